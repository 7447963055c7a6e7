#include "executor/terminal/ends.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace executor {
namespace {

base::Fd copy(const base::Fd& fd) { return base::Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

}  // namespace

base::Result<std::shared_ptr<const Terminal>> hold_terminal(Launched& ends, bool typed_into) {
  Terminal terminal;
  terminal.master = std::exchange(ends.terminal, {});
  terminal.slave =
      base::Fd(::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (terminal.slave) ends.stdout_end = copy(terminal.master);
  if (ends.stdout_end && typed_into) ends.stdin_end = copy(terminal.master);
  if (!ends.stdout_end || (typed_into && !ends.stdin_end))
    return base::error(base::ErrorCode::kRateLimited,
                       "cannot hold a terminal: ", std::strerror(errno));
  return std::make_shared<const Terminal>(std::move(terminal));
}

}  // namespace executor
