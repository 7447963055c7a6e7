#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "libs/base/kernel_files.h"

// A command and all that comes of it, as one thing that can be signalled. With a cgroup2 folder of
// our own each command gets a child group: membership is exact and cgroup.kill spares nobody.
// Without one the tree is read from /proc: the command's session, its process group and its
// descendants; a process that made a session of its own *and* lost its parent before the first
// signal is then not found.
namespace executor {

std::vector<base::ProcessFacts> read_processes();
// Those of `all` that came of `root`, itself included: by parent, session or group.
std::vector<base::ProcessFacts> descendants(const std::vector<base::ProcessFacts>& all, pid_t root);

class Tree {
 public:
  // `group`: the command's own cgroup, which remains the owner's to remove.
  Tree(pid_t root, std::optional<std::filesystem::path> group)
      : root_(root), group_(std::move(group)) {}

  // Reaches every member; false when there was none left. SIGKILL leaves none.
  bool signal(int number);
  // Call when the root has ended, before it is reaped: from then on its number may be a stranger's.
  void root_ended();

 private:
  bool kill();
  std::vector<base::ProcessFacts> members();

  pid_t root_;
  std::optional<std::filesystem::path> group_;
  bool root_ended_ = false;
  std::map<pid_t, std::uint64_t> known_;  // Seen as members before; pid to start.
};

}  // namespace executor
