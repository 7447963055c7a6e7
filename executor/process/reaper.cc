#include "executor/process/reaper.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace executor {
namespace {

constexpr int kSocket = 3, kSignals = 4;
constexpr int kPauseFirstMs = 1, kPauseLongestMs = 200;  // Between looks at those who do not die.

// As getdents64(2) lays it out.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

pid_t to_pid(const char* digits) {
  pid_t pid = 0;
  for (; *digits >= '0' && *digits <= '9'; ++digits) pid = pid * 10 + (*digits - '0');
  return *digits == '\0' || *digits == ' ' ? pid : 0;
}

// The fourth field of /proc/PID/stat; 0 when there is no such process.
pid_t parent_of(const char* pid_name) {
  char path[64] = "/proc/";
  constexpr std::size_t kBegun = 6, kRest = sizeof "/stat";
  const std::size_t length = std::strlen(pid_name);
  if (kBegun + length + kRest > sizeof path) return 0;
  std::copy_n("/stat", kRest, std::copy_n(pid_name, length, path + kBegun));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (got <= 0) return 0;
  text[got] = '\0';
  // ") S 123 ": behind the name, which may hold any character.
  const char* name_end = std::strrchr(text, ')');
  if (!name_end || std::strlen(name_end) < 5) return 0;
  return to_pid(name_end + 4);
}

// Children only: their numbers are theirs until we reap them. What is beneath comes up to us as
// they end.
void kill_children() {
  const pid_t self = ::getpid();
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(DirectoryEntry) char entries[8192];
  for (;;) {
    const long got = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->size;
      const pid_t pid = to_pid(entry->name);
      // At once and not after the look: a chain that forks on is met where it is now.
      if (pid > 0 && parent_of(entry->name) == self) ::kill(pid, SIGKILL);
    }
  }
  ::close(folder);
}

class Reaper {
 public:
  Reaper(int socket, pid_t leader) : leader_(leader) {
    keep_only(socket);
    say({ReaperWord::kBegun, leader});
  }

  [[noreturn]] void run() {
    int pause_ms = kPauseFirstMs;
    for (;;) {
      pollfd watched[] = {{kSignals, POLLIN, 0}, {hears_ ? kSocket : -1, POLLIN, 0}};
      ::poll(watched, 2, killing_ ? pause_ms : -1);
      forget_signals_arrived();
      if (watched[1].revents != 0) listen();
      if (killing_) kill_children();
      const bool reaped = reap();
      pause_ms = reaped ? kPauseFirstMs : std::min(pause_ms * 2, kPauseLongestMs);
    }
  }

 private:
  // Whatever we held open would never end for others.
  static void keep_only(int socket) {
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    const int signals = ::signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
    // Out of the way of the two numbers, then to them.
    const int socket_aside = ::fcntl(socket, F_DUPFD, kSignals + 1);
    const int signals_aside = ::fcntl(signals, F_DUPFD, kSignals + 1);
    ::dup2(socket_aside, kSocket);
    ::dup2(signals_aside, kSignals);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int standard = 0; standard < kSocket; ++standard) ::dup2(nothing, standard);
    ::syscall(SYS_close_range, kSignals + 1, ~0U, 0);
  }

  void say(ReaperWord word) {
    if (hears_) ::send(kSocket, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  static void forget_signals_arrived() {
    signalfd_siginfo info{};
    while (::read(kSignals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
  }

  void listen() {
    char word = 0;
    const ssize_t got = ::recv(kSocket, &word, sizeof word, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      hears_ = false;
      ::close(kSocket);
    }
    if (got <= 0 || word == kKillTree) killing_ = true;
  }

  // A Unix socket that is closed before all was read of it takes from its peer, by ECONNRESET, what
  // that has not yet read either: our last words, when we are told to kill as nobody is left.
  void leave_nothing_unread() const {
    if (!hears_) return;
    ::shutdown(kSocket, SHUT_RD);  // Nothing comes after this.
    char word = 0;
    while (::recv(kSocket, &word, sizeof word, MSG_DONTWAIT) > 0) {
    }
  }

  // Whether there was somebody to reap. Does not return when nobody is left.
  bool reap() {
    bool reaped = false;
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno != ECHILD)) return reaped;
      if (ended < 0) {
        say({ReaperWord::kEmpty, 0});
        leave_nothing_unread();
        ::_exit(0);
      }
      if (ended == leader_) say({ReaperWord::kEnded, status});
      reaped = true;
    }
  }

  const pid_t leader_;
  bool hears_ = true, killing_ = false;
};

}  // namespace

void become_reaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "sandfleet-reap");
  ::setsid();
  // None of them is for us, and the command begins with none blocked.
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

void reap_tree(int socket, pid_t leader) { Reaper(socket, leader).run(); }

}  // namespace executor
