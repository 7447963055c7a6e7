#pragma once

#include <string>
#include <vector>

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/print/render.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/frames/process_operations.h"

// What was started in a sandbox, by whomever: listed and ended by its handle.
namespace cli {

int list_processes(wire::Connection& connection, const Options& options, const Terminal& terminal);
// The last word is the handle.
int end_process(wire::Connection& connection, const Options& options, const Terminal& terminal);

Table process_table(const std::vector<wire::ListedProcess>& processes, base::WallTime now);
// "Running", "Exited(0)", "Killed(SIGTERM)", and whether some of its tree are left.
std::string state_word(const wire::ProcessState& state);

}  // namespace cli
