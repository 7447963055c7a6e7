#pragma once

#include <filesystem>
#include <map>
#include <optional>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace executor {

// A cgroup2 folder in which this process makes a group for each command.
class Groups {
 public:
  // The folder of this process in the cgroup2 hierarchy at `mount`; nothing when there is none, or
  // when no group with cgroup.kill can be made in it.
  static std::optional<Groups> find(const std::filesystem::path& mount = "/sys/fs/cgroup");
  explicit Groups(std::filesystem::path folder) : folder_(std::move(folder)) {}

  base::Result<std::filesystem::path> make() const;
  void remove_empty() const;  // Groups that have outlived their last member.
  // Removes groups in which a command made groups of its own, which it may have made for somebody
  // who is yet to come: so only once every look for as long as `kept` found no process in them.
  void remove_abandoned(base::Moment now, base::Milliseconds kept);

 private:
  std::filesystem::path folder_;
  std::map<std::filesystem::path, base::Moment> unused_since_;
};

}  // namespace executor
