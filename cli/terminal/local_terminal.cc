#include "cli/terminal/local_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

namespace cli {
namespace {

void set(int descriptor, const termios& settings) {
  while (::tcsetattr(descriptor, TCSADRAIN, &settings) != 0 && errno == EINTR) {
  }
}

std::optional<termios> settings_of(int descriptor) {
  termios settings{};
  if (::tcgetattr(descriptor, &settings) != 0) return std::nullopt;
  return settings;
}

bool are_same(const termios& one, const termios& other) {
  return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag &&
         one.c_cflag == other.c_cflag && one.c_lflag == other.c_lflag &&
         std::equal(std::begin(one.c_cc), std::end(one.c_cc), std::begin(other.c_cc));
}

}  // namespace

LocalTerminal::LocalTerminal(int descriptor)
    : descriptor_(descriptor), before_(settings_of(descriptor)) {}

// One that is nobody's has no background: tcgetpgrp(3), ENOTTY.
bool LocalTerminal::has_foreground() const {
  const pid_t group = ::tcgetpgrp(descriptor_);
  return group < 0 || group == ::getpgrp();
}

bool LocalTerminal::take() {
  if (!is_one()) return false;
  if (!has_foreground()) ::kill(0, SIGTTOU);
  if (!has_foreground()) return false;
  const auto now = settings_of(descriptor_);
  if (!now || (taken_ && are_same(*now, ours_))) return false;
  before_ = ours_ = *now;
  ::cfmakeraw(&ours_);
  set(descriptor_, ours_);
  taken_ = true;
  // What the terminal made of it, for comparing.
  if (const auto made = settings_of(descriptor_)) ours_ = *made;
  return true;
}

// Who sets it in the background is stopped: tcsetattr(3), SIGTTOU.
void LocalTerminal::give_back() {
  if (!taken_ || !has_foreground()) return;
  set(descriptor_, *before_);
  taken_ = false;
}

wire::TerminalSize LocalTerminal::size() const {
  winsize size{};
  if (::ioctl(descriptor_, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace cli
