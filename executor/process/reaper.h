#pragma once

#include <sys/types.h>

// A small process between us and one command, for where there is no cgroup. As a subreaper it
// inherits whatever of the command's tree loses its parent, so that nothing leaves the tree, by
// however many forks and sessions: when it has no child left, wait4 says so, and that is the proof.
// It kills the tree when it is told to, and when its socket ends because we have died.
namespace executor {

// What it says, a datagram each.
struct ReaperWord {
  enum Kind : int {
    kBegun,  // `value` is the pid of the command.
    kEnded,  // `value` is its wait status.
    kEmpty,  // No member of the tree is left. It says no more and ends.
  };
  Kind kind;
  int value;
};

// The only thing that is said to it, as one byte.
inline constexpr char kKillTree = 'k';

// Both are for a process just forked, which may have been one of several threads: they allocate
// nothing and take no lock.
void become_reaper();
[[noreturn]] void reap_tree(int socket, pid_t leader);

}  // namespace executor
