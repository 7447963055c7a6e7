#include "cli/reach/held_signals.h"

#include <poll.h>
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

void hold_terminal_signals(int descriptor) {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT})
    sigaddset(&held, number);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  ::signalfd(descriptor, &held, 0);
}

void stop_as_job() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  ::kill(0, SIGTSTP);
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

std::optional<int> next_signal(int descriptor) {
  pollfd there{.fd = descriptor, .events = POLLIN, .revents = 0};
  signalfd_siginfo signal{};
  if (::poll(&there, 1, 0) <= 0) return std::nullopt;
  if (::read(descriptor, &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace cli
