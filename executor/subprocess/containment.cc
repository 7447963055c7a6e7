#include "executor/subprocess/containment.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "libs/base/fd.h"

namespace executor {
namespace {

constexpr int kRoundsMax = 8;  // Against a tree that forks as fast as it is read.

}  // namespace

Exit exit_of(int wait_status) {
  if (WIFEXITED(wait_status)) return {.code = WEXITSTATUS(wait_status), .signal = std::nullopt};
  return {.code = std::nullopt, .signal = WTERMSIG(wait_status)};
}

// A number is looked up twice, with a handle taken in between: one that is a member's after that is
// either the member's whom the handle stands for, or the handle is of somebody who has ended.
base::Result<int> signal_each(const std::function<std::vector<pid_t>()>& list, int number) {
  std::set<pid_t> seen;
  int reached = 0, refused = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    std::vector<std::pair<pid_t, base::Fd>> handles;
    for (const pid_t pid : list())
      if (seen.insert(pid).second)
        handles.emplace_back(pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (handles.empty()) break;
    const std::vector<pid_t> still = list();
    for (const auto& [pid, handle] : handles) {
      if (!handle || std::find(still.begin(), still.end(), pid) == still.end()) continue;
      if (::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0) == 0)
        ++reached;
      else if (errno == EPERM)
        ++refused;
    }
  }
  if (reached == 0 && refused > 0)
    return base::error(base::ErrorCode::kDenied, "the processes belong to another user");
  return reached;
}

}  // namespace executor
