#pragma once

#include <string>

#include "cli/execute.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/frames/process_operations.h"

// A new terminal in a sandbox, and what was left there, by its handle: the last word.
namespace cli {

int open_shell(const Verb& verb, const Options& options, wire::Connection& connection,
               const Ends& ends, const Terminal& terminal);
int attach(const Verb& verb, const Options& options, wire::Connection& connection, const Ends& ends,
           const Terminal& terminal);

// How a process is. A signal gives up the wait.
base::Result<wire::ProcessState, wire::Failure> look_at(wire::Connection& connection,
                                                        const std::string& handle, const Ends& ends,
                                                        const Terminal& terminal);

}  // namespace cli
