#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

// One cgroup2 folder of a box. Freezing and killing need no controller, so they work where the
// controllers are still on version 1.
namespace local_e2b {

class Cgroup {
 public:
  explicit Cgroup(std::filesystem::path path) : path_(std::move(path)) {}

  // Made when it is missing. `owner` may add processes and folders beneath it, but unless it is who
  // made it neither freeze nor kill the whole of it.
  base::Result<base::Done> make(uid_t owner, gid_t group) const;
  base::Result<base::Fd> open() const;  // For CLONE_INTO_CGROUP.
  bool exists() const;
  bool empty() const;  // No process is in it or beneath it.
  std::vector<pid_t> members()
      const;  // In it and beneath it; 0 where another PID namespace hides one.

  // Return once every process beneath it stands still, or runs again.
  base::Result<base::Done> freeze(base::Milliseconds at_most) const;
  base::Result<base::Done> thaw(base::Milliseconds at_most) const;
  bool frozen() const;
  // Returns once no process is left in it or beneath it; frozen ones die as well.
  base::Result<base::Done> kill(base::Milliseconds at_most) const;
  // Removes it and what the box made beneath it, and kills what still appears in it.
  base::Result<base::Done> remove(base::Milliseconds at_most) const;

 private:
  // Waits for the line "<key> <value>" in cgroup.events.
  base::Result<base::Done> wait_for(const std::string& line, base::Milliseconds at_most) const;

  std::filesystem::path path_;
};

// Whether `events`, the text of a cgroup.events file, has that line.
bool has_line(const std::string& events, const std::string& line);
// The path of a process in the cgroup2 hierarchy by `text`, of its /proc/PID/cgroup: it begins with
// a slash and is relative to what the reader sees as the root. Empty when it is in none.
std::string cgroup2_path(const std::string& text);
// Whether `text`, of /proc/PID/cgroup, says that the process is in folder/name or beneath it,
// wherever the reader's view of the hierarchy begins.
bool is_in_cgroup(const std::string& text, const std::string& folder, const std::string& name);

}  // namespace local_e2b
