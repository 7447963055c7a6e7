#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "libs/base/result.h"

// What Linux tells of processes in files, and is told through files.
namespace base {

struct ProcessFacts {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  char state = '?';         // As in proc(5).
  std::uint64_t start = 0;  // Ticks since boot; with the pid it names one process for good.
  bool operator==(const ProcessFacts&) const = default;

  bool ended() const { return state == 'Z' || state == 'X'; }  // It may wait to be reaped.
};
// Reads the text of /proc/PID/stat, whose second field may hold any character.
std::optional<ProcessFacts> parse_process(std::string_view stat);
std::optional<ProcessFacts> look_at_process(pid_t pid);
bool runs(pid_t pid);  // There is such a process, and it has not ended.

// Writes to a file that is there, all at once: an id map, a control of a cgroup.
Result<Done> write_setting(const std::filesystem::path& path, std::string_view text);

}  // namespace base
