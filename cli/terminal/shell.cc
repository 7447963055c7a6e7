#include "cli/terminal/shell.h"

#include "cli/terminal/sitting.h"

namespace cli {

base::Result<Command> read_shell(const Options& options) {
  Options named = options;
  // Which shell it is only the sandbox knows.
  if (named.command.empty()) named.command = {"/bin/sh", "-c", R"(exec "${SHELL:-/bin/sh}" -l)"};
  return read_command(named);
}

int open_terminal(wire::Connection& connection, const Command& command, const Seat& seat,
                  const Ends& ends, const Terminal& terminal) {
  Sitting sitting(connection, seat, ends, terminal);
  sitting.open();
  sitting.spawn(command);
  return sitting.run();
}

int attach_terminal(wire::Connection& connection, const Seat& seat, const Ends& ends,
                    const Terminal& terminal) {
  Sitting sitting(connection, seat, ends, terminal);
  sitting.attach(0);
  return sitting.run();
}

}  // namespace cli
