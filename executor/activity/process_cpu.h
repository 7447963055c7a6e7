#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "libs/base/clock.h"

namespace executor {

// What one line of /proc/PID/stat says (proc_pid_stat(5)), in clock ticks.
struct ProcessTimes {
  std::string_view name;  // Cut to 15 bytes, as the kernel does.
  bool of_the_kernel = false;
  long own = 0;       // In user mode and in the kernel's.
  long children = 0;  // The same of those that have ended and were waited for.
  bool operator==(const ProcessTimes&) const = default;
};
std::optional<ProcessTimes> parse_process_times(std::string_view stat);

// The CPU time of all processes that can be seen, and of the children that they have waited for,
// apart from what is used by ourselves (whoever has our name) and by E2B's daemon: what those two
// use serves others. A command that ends moves from its own line to its parent's, so that it is not
// missed between two looks.
base::Milliseconds cpu_of_processes(const std::filesystem::path& proc = "/proc",
                                    std::size_t processes_max = 8'192);

}  // namespace executor
