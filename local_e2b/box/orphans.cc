#include "local_e2b/box/orphans.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string_view>

#include "libs/base/folder.h"
#include "libs/base/log.h"
#include "local_e2b/box/cgroup.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kServerPrefix = "sandfleet-";  // Of a server's cgroup.
constexpr base::Milliseconds kEndMax{15'000};

std::vector<fs::path> groups_in(const fs::path& cgroup) {
  std::vector<fs::path> groups;
  std::error_code failed;
  for (const fs::path& entry : base::entries_of(cgroup))
    if (fs::is_directory(entry, failed)) groups.push_back(entry);
  return groups;
}

// All of its processes have lost their root, and there is one at least. A process of the box may
// have put itself into a folder that is gone; its init has not.
bool has_lost_its_root(const std::vector<pid_t>& members) {
  bool lost = false;
  for (const pid_t member : members) {
    const fs::path root = fs::path("/proc") / std::to_string(member) / "root/.";
    struct stat found{};
    if (::stat(root.c_str(), &found) != 0) continue;  // It has ended, or nothing can be said.
    if (found.st_nlink > 0) return false;
    lost = true;
  }
  return lost;
}

bool is_older_than(const fs::path& cgroup, base::Seconds age) {
  struct stat found{};
  return ::stat(cgroup.c_str(), &found) == 0 &&
         found.st_ctim.tv_sec + age.count() < ::time(nullptr);
}

}  // namespace

std::vector<std::string> destroy_orphans(const fs::path& cgroup2, base::Seconds empty_max) {
  std::vector<std::string> destroyed;
  for (const fs::path& server : groups_in(cgroup2)) {
    if (!server.filename().string().starts_with(kServerPrefix)) continue;
    // One that was just made may be about to get its first box.
    bool may_go = is_older_than(server, empty_max);
    for (const fs::path& box : groups_in(server)) {
      const Cgroup cgroup(box);
      const bool empty = cgroup.empty();
      if (empty ? !is_older_than(box, empty_max) : !has_lost_its_root(cgroup.members())) continue;
      auto ended = cgroup.kill(kEndMax);
      if (ended) ended = cgroup.remove(kEndMax);
      if (!ended) {
        base::log::warn("a box without its folder stays",
                        {{"box", box.filename().string()}, {"why", ended.error()}});
        continue;
      }
      destroyed.push_back(box.filename());
      may_go = true;
    }
    if (may_go) ::rmdir(server.c_str());  // Unless other boxes are in it.
  }
  return destroyed;
}

}  // namespace local_e2b
