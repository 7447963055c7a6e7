#include "executor/process/groups.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr int kRemovalsMax = 256;  // At one look: the loop waits for them.

std::optional<std::string> own_group() {
  const auto text = base::read_file("/proc/self/cgroup");
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n'))
    if (line.starts_with("0::/")) return line.substr(4);
  return std::nullopt;
}

// Whether no process is in it or in a group beneath it.
bool is_unused(const fs::path& group) {
  const auto text = base::read_file(group / "cgroup.events");
  if (!text) return false;
  const auto lines = base::split(*text, '\n');
  return std::count(lines.begin(), lines.end(), "populated 0") > 0;
}

// With the groups beneath it, innermost first; false when something of it stays.
bool remove_whole(const fs::path& group, int& removals_left) {
  if (::rmdir(group.c_str()) == 0 || errno == ENOENT) return true;
  std::error_code failed;
  for (const fs::path& inner : base::entries_of(group)) {
    if (!fs::is_directory(inner, failed)) continue;
    --removals_left;
    if (removals_left < 0) return false;
    if (!remove_whole(inner, removals_left)) return false;
  }
  return ::rmdir(group.c_str()) == 0;
}

void add_members(const fs::path& group, std::vector<pid_t>& pids) {
  const auto text = base::read_file(group / "cgroup.procs");
  if (!text) return;
  for (const std::string& line : base::split(*text, '\n'))
    // 0 stands for one that lives in another PID namespace.
    if (const auto pid = base::parse_integer(line); pid.value_or(0) > 0)
      pids.push_back(static_cast<pid_t>(*pid));
  std::error_code failed;
  for (const fs::path& inner : base::entries_of(group))
    if (fs::is_directory(inner, failed)) add_members(inner, pids);
}

}  // namespace

std::vector<pid_t> members_of(const fs::path& group) {
  std::vector<pid_t> pids;
  add_members(group, pids);
  return pids;
}

std::optional<Groups> Groups::find(const fs::path& mount, const std::string& owner) {
  struct statfs about{};
  if (::statfs(mount.c_str(), &about) != 0 || about.f_type != CGROUP2_SUPER_MAGIC)
    return std::nullopt;
  const auto own = own_group();
  if (!own) return std::nullopt;
  Groups groups(own->empty() ? mount : mount / *own, owner);
  const auto probe = groups.make();
  if (!probe) return std::nullopt;
  const bool can_kill = ::access((*probe / "cgroup.kill").c_str(), W_OK) == 0;
  ::rmdir(probe->c_str());
  return can_kill ? std::optional(groups) : std::nullopt;
}

base::Result<fs::path> Groups::make() const {
  fs::path group = folder_ / (prefix_ + base::random_hex(8));
  if (::mkdir(group.c_str(), 0755) != 0) return base::errno_error("make cgroup", group, errno);
  return group;
}

// Those of its owner, as `make` named them.
std::vector<fs::path> Groups::all() const {
  std::vector<fs::path> groups = base::entries_of(folder_);
  std::erase_if(groups, [this](const fs::path& entry) {
    return !entry.filename().string().starts_with(prefix_);
  });
  return groups;
}

bool Groups::remove(const fs::path& group) {
  int removals_left = kRemovalsMax;
  return remove_whole(group, removals_left);
}

void Groups::kill_all() const {
  for (const fs::path& group : all())
    static_cast<void>(base::write_setting(group / "cgroup.kill", "1"));
}

// The kernel counts this for every group of cgroup2, with whatever is beneath it.
base::Milliseconds Groups::cpu_used() const {
  constexpr std::string_view kUsage = "usage_usec ";
  std::int64_t microseconds = 0;
  for (const fs::path& group : all()) {
    const auto text = base::read_file(group / "cpu.stat");
    if (!text || !text->starts_with(kUsage)) continue;
    const std::string line = text->substr(kUsage.size(), text->find('\n') - kUsage.size());
    microseconds += base::parse_integer(line).value_or(0);
  }
  return base::Milliseconds(microseconds / 1'000);
}

void Groups::remove_empty() const {
  // The kernel refuses to remove one that has members or groups beneath it.
  for (const fs::path& group : all()) ::rmdir(group.c_str());
}

void Groups::remove_abandoned(base::Moment now, base::Milliseconds kept) {
  std::map<fs::path, base::Moment> unused;
  int removals_left = kRemovalsMax;
  for (const fs::path& group : all()) {
    if (!is_unused(group)) continue;
    const auto seen = unused_since_.find(group);
    const base::Moment since = seen == unused_since_.end() ? now : seen->second;
    if (now - since >= kept && remove_whole(group, removals_left)) continue;
    unused.emplace(group, since);
  }
  unused_since_ = std::move(unused);
}

}  // namespace executor
