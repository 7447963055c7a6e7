#include "cli/held_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace cli {

base::Fd hold_signals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, number);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return base::Fd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> next_signal(int descriptor) {
  signalfd_siginfo signal{};
  if (::read(descriptor, &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace cli
