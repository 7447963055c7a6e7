#pragma once

#include "cli/execute.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "libs/wire/client/connection.h"

namespace cli {

// What is kept of a process's outputs, by its handle, the last word. It is read and not taken:
// whoever is attached goes on. With --follow, to the end of each.
int show_logs(wire::Connection& connection, const Options& options, const Ends& ends,
              const Terminal& terminal);

}  // namespace cli
