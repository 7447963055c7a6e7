#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace local_e2b {

struct ProcessState {
  char state = '?';         // As in proc(5): Z has ended and waits to be reaped.
  std::uint64_t start = 0;  // Ticks since boot; with the pid it names one process for good.
  bool operator==(const ProcessState&) const = default;
};
// Reads the text of /proc/PID/stat, whose second field may hold any character.
std::optional<ProcessState> parse_stat(const std::string& text);
std::optional<ProcessState> look_at_process(pid_t pid);

// Whether `text`, of /proc/PID/cgroup, says that the process is in folder/name or beneath it,
// wherever the reader's view of the hierarchy begins.
bool is_in_cgroup(const std::string& text, const std::string& folder, const std::string& name);

}  // namespace local_e2b
