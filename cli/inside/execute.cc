#include "cli/inside/execute.h"

#include <optional>

#include "cli/inside/execution.h"

namespace cli {

int execute(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal) {
  return Execution(connection, command, std::nullopt, ends, terminal).run();
}

int join(wire::Connection& connection, const Joined& joined, const Ends& ends,
         const Terminal& terminal) {
  return Execution(connection, Command{}, joined, ends, terminal).run();
}

}  // namespace cli
