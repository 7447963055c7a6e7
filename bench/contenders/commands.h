#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// How bench/agentd drives those that it compares: a command a line on standard input, which is a
// word, how often, and numbers; for each a line on standard output, the nanoseconds that each time
// took. So contenders may take turns, and a machine that is busy strikes all alike.
namespace contenders {

struct Command {
  std::string word;
  std::size_t times = 0;
  std::vector<std::uint64_t> numbers;
};

// Waits for it; nothing: there are no more.
std::optional<Command> next_command();
void answer(const std::vector<std::int64_t>& nanoseconds);

class Stopwatch {
 public:
  std::int64_t nanoseconds() const {
    return std::chrono::nanoseconds(Clock::now() - began_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_ = Clock::now();
};

[[noreturn]] void give_up(const std::string& why);

}  // namespace contenders
