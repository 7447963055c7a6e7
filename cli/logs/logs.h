#pragma once

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/wire/client/connection.h"

namespace cli {

// What is kept of a process's outputs, by its handle, the last word. It is read and not taken:
// whoever is attached goes on. With --follow, to the end of each.
int show_logs(wire::Connection& connection, const Options& options, const Ends& ends,
              const Terminal& terminal);

}  // namespace cli
