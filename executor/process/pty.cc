#include "executor/process/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace executor {
namespace {

base::Error no_terminal(const char* step) {
  return base::error(base::ErrorCode::kRateLimited, "no terminal: ", step, ": ",
                     std::strerror(errno));
}

}  // namespace

base::Result<Terminal> open_terminal(TerminalSize size, const User& owner, bool give_away) {
  Terminal terminal;
  terminal.master = base::Fd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.master) return no_terminal("open /dev/ptmx");
  const int unlocked = 0;
  if (::ioctl(terminal.master.get(), TIOCSPTLCK, &unlocked) != 0) return no_terminal("unlock");
  terminal.slave =
      base::Fd(::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave) return no_terminal("open its other side");
  // So that its user can open it by name; a command that only inherits it works without.
  if (give_away && ::fchown(terminal.slave.get(), owner.uid, static_cast<gid_t>(-1)) == 0)
    ::fchmod(terminal.slave.get(), 0620);
  CHECK_OK(resize_terminal(terminal.master.get(), size));
  return terminal;
}

base::Result<base::Done> resize_terminal(int master, TerminalSize size) {
  winsize window{};
  window.ws_col = size.columns;
  window.ws_row = size.rows;
  if (::ioctl(master, TIOCSWINSZ, &window) != 0)
    return base::error(base::ErrorCode::kUnavailable,
                       "cannot resize the terminal: ", std::strerror(errno));
  return base::Done{};
}

}  // namespace executor
