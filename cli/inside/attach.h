#pragma once

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/wire/client/connection.h"

// A new terminal in a sandbox, and what was left there, by its handle: the last word.
namespace cli {

int open_shell(const Verb& verb, const Options& options, wire::Connection& connection,
               const Ends& ends, const Terminal& terminal);
int attach(const Verb& verb, const Options& options, wire::Connection& connection, const Ends& ends,
           const Terminal& terminal);

}  // namespace cli
