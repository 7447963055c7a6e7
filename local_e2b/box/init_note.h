#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace local_e2b {

// Which process is a box's init. The builder leaves it in the box's folder before it lets init go
// on, so that a box that no record names and no cgroup holds can be found and ended, too.
struct InitNote {
  pid_t pid = 0;            // In the server's PID namespace.
  std::uint64_t start = 0;  // See BoxRecord::init_start.
  std::string boot;         // The kernel's id of this boot: pid and start name one process in it.
  bool operator==(const InitNote&) const = default;
};
// The note of a process that is there, if only to be reaped.
std::optional<InitNote> note_of(pid_t pid);

base::Result<base::Done> write_init_note(const std::filesystem::path& folder, const InitNote& note);
std::optional<InitNote> read_init_note(const std::filesystem::path& folder);

// Returns once that process is gone, and with it, as it is the first of its PID namespace, all
// processes of the box. A process that only has the same number is left alone.
base::Result<base::Done> end_init(const InitNote& note, base::Milliseconds at_most);

}  // namespace local_e2b
