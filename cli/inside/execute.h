#pragma once

#include <string>

#include "cli/line/terminal.h"
#include "cli/reach/command.h"
#include "cli/reach/ends.h"
#include "libs/wire/client/connection.h"

// One command in a sandbox, as if it ran here: bytes both ways, signals, the end.
namespace cli {

// To its end; the exit code is the command's own, or one of exit_code.h.
int execute(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal);

// A process that was begun before, with the ends that it has for us. It goes on when we leave.
struct Joined {
  std::string handle;
  bool out = false, err = false;
  bool input = false;    // Ours is passed on.
  std::string way_back;  // What is typed to join it again.
};
// What is kept of its outputs, and what comes, to its end.
int join(wire::Connection& connection, const Joined& joined, const Ends& ends,
         const Terminal& terminal);

}  // namespace cli
