#pragma once

#include <deque>

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/logs/output.h"
#include "cli/reach/ends.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"

namespace cli {

// What is to be shown of a process's outputs, by its handle, the last word: each from where it
// begins, which takes some reading where last lines are asked for. A signal gives it up.
base::Result<std::deque<Output>> outputs_to_show(wire::Connection& connection,
                                                 const Options& options, const Ends& ends,
                                                 const Terminal& terminal);

}  // namespace cli
