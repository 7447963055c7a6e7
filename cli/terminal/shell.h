#pragma once

#include <string>

#include "cli/line/terminal.h"
#include "cli/reach/command.h"
#include "cli/reach/ends.h"
#include "cli/terminal/typed.h"
#include "libs/wire/client/connection.h"

// A terminal in a sandbox, at the terminal here. It belongs to no session: whoever leaves it, or
// loses the way to it, comes back to it as it is.
namespace cli {

// kInvalid says what is wrong with it. Without a command it is the user's login shell.
base::Result<Command> read_shell(const Options& options);

// Where one sits.
struct Seat {
  std::string handle;
  std::string way_back;  // What is typed to come back.
  Escapes escapes;
  std::string escape_char;
};

// To the end of its command, whose exit code it is, or until it is left: 0. Else one of
// exit_code.h.
int open_terminal(wire::Connection& connection, const Command& command, const Seat& seat,
                  const Ends& ends, const Terminal& terminal);
// The same of one that is there; what is kept of what it has shown comes first.
int attach_terminal(wire::Connection& connection, const Seat& seat, const Ends& ends,
                    const Terminal& terminal);

}  // namespace cli
