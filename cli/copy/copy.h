#pragma once

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/wire/client/connection.h"

// Files and folders into a sandbox, and out of it.
namespace cli {

int copy(wire::Connection& connection, const Options& options, const Ends& ends,
         const Terminal& terminal);

}  // namespace cli
