#include "bench/contenders/commands.h"

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace contenders {

std::optional<Command> next_command() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  std::istringstream words(line);
  Command command;
  if (!(words >> command.word >> command.times)) give_up("no command: " + line);
  for (std::uint64_t number = 0; words >> number;) command.numbers.push_back(number);
  return command;
}

void answer(const std::vector<std::int64_t>& nanoseconds) {
  for (const std::int64_t each : nanoseconds) std::cout << each << ' ';
  std::cout << '\n' << std::flush;
}

void give_up(const std::string& why) {
  std::cerr << why << '\n';
  std::exit(1);
}

}  // namespace contenders
