#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace executor {

// The processes in a cgroup and in those beneath it.
std::vector<pid_t> members_of(const std::filesystem::path& group);

// A cgroup2 folder in which this process makes a group for each command. Others may make theirs in
// the same folder: whose one is stands in its name.
class Groups {
 public:
  // The folder of this process in the cgroup2 hierarchy at `mount`; nothing when there is none, or
  // when no group with cgroup.kill can be made in it.
  static std::optional<Groups> find(const std::filesystem::path& mount = "/sys/fs/cgroup",
                                    const std::string& owner = kStarts);
  explicit Groups(std::filesystem::path folder, const std::string& owner = kStarts)
      : folder_(std::move(folder)), prefix_("sandfleet-" + owner + "-") {}

  base::Result<std::filesystem::path> make() const;
  // One that has outlived its last member, with the groups that were made in it; false when
  // something of it stays.
  static bool remove(const std::filesystem::path& group);
  base::Milliseconds cpu_used() const;  // By all that is, and was, in those that there are now.
  void remove_empty() const;            // All such groups, but for those in which others were made.
  // Kills whatever is in them: what an earlier life of their owner started.
  void kill_all() const;
  // Removes groups in which a command made groups of its own, which it may have made for somebody
  // who is yet to come: so only once every look for as long as `kept` found no process in them.
  void remove_abandoned(base::Moment now, base::Milliseconds kept);

 private:
  static constexpr const char* kStarts = "start";
  std::vector<std::filesystem::path> all() const;

  std::filesystem::path folder_;
  std::string prefix_;
  std::map<std::filesystem::path, base::Moment> unused_since_;
};

}  // namespace executor
