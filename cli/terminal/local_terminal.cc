#include "cli/terminal/local_terminal.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

namespace cli {
namespace {

void set(int descriptor, const termios& mode) {
  while (::tcsetattr(descriptor, TCSADRAIN, &mode) != 0 && errno == EINTR) {
  }
}

}  // namespace

LocalTerminal::LocalTerminal(int descriptor) : descriptor_(descriptor) {
  if (termios mode{}; ::tcgetattr(descriptor, &mode) == 0) before_ = mode;
}

void LocalTerminal::make_raw() {
  if (!before_) return;
  termios mode = *before_;
  ::cfmakeraw(&mode);
  set(descriptor_, mode);
  raw_ = true;
}

void LocalTerminal::restore() {
  if (!std::exchange(raw_, false)) return;
  set(descriptor_, *before_);
}

wire::TerminalSize LocalTerminal::size() const {
  winsize size{};
  if (::ioctl(descriptor_, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace cli
