#include "executor/terminal/foreground.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/process/tree.h"

namespace executor {
namespace {

constexpr int kRoundsMax = 3;  // Of looks at a foreground that changes.

// Also what the kernel has not yet passed on to the reader's side. Less than a line is no input for
// a program that reads lines.
bool has_input(int slave) {
  pollfd wanted{slave, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLIN) != 0;
}

InputWaiting group_waits(pid_t group, const TerminalFile& terminal) {
  InputWaiting answer = InputWaiting::kNo;
  bool seen = false;
  for (const base::ProcessFacts& process : read_processes()) {
    if (process.group != group || process.ended()) continue;
    seen = true;
    answer = std::max(answer, waits_for_input(process.pid, terminal));
  }
  if (!seen && (::kill(-group, 0) == 0 || errno != ESRCH)) return InputWaiting::kUnknown;
  return answer;
}

}  // namespace

std::optional<pid_t> foreground_group(int master) {
  pid_t group = 0;
  if (::ioctl(master, TIOCGPGRP, &group) != 0 || group <= 0) return std::nullopt;
  return group;
}

std::optional<Foreground> look_at_foreground(const Terminal& terminal) {
  struct stat about{};
  if (::fstat(terminal.slave.get(), &about) != 0) return std::nullopt;
  std::optional<pid_t> group = foreground_group(terminal.master.get());
  for (int round = 0; group && round < kRoundsMax; ++round) {
    const InputWaiting waiting = has_input(terminal.slave.get())
                                     ? InputWaiting::kNo
                                     : group_waits(*group, {about.st_dev, about.st_ino});
    const auto still = foreground_group(terminal.master.get());
    if (still == group) return Foreground{*group, waiting};
    group = still;
  }
  if (!group) return std::nullopt;
  return Foreground{*group, InputWaiting::kUnknown};
}

bool is_sent_by_terminal(int number) {
  return number == SIGINT || number == SIGQUIT || number == SIGTSTP;
}

base::Result<base::Done> send_by_terminal(int master, int number) {
  if (::ioctl(master, TIOCSIG, number) == 0) return base::Done{};
  return base::error(base::ErrorCode::kUnavailable,
                     "the terminal does not send a signal: ", std::strerror(errno));
}

}  // namespace executor
