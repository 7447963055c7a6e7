#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/verbs.h"
#include "libs/wire/client/connection.h"

// One command in a sandbox, as if it ran here: bytes both ways, signals, the end.
namespace cli {

// This process's own side.
struct Ends {
  int in = 0, out = 1, err = 2;
  int signals = -1;      // Of hold_signals.
  bool watched = false;  // By a person, who wants to know why nothing moves.
};

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

// That an output begins only there.
std::string dropped(std::int64_t bytes, std::string_view output);

}  // namespace cli
