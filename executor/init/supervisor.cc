#include "executor/init/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "libs/base/log.h"

namespace executor {
namespace {

constexpr base::Seconds kShortLife{10};
constexpr base::Milliseconds kLookAtRoot{5'000};
constexpr base::Milliseconds kTidyUpWithin{8'000};

base::Moment now() { return base::SystemClock().now(); }

// Somebody outside has removed the folder that is our root. Nothing can be read here any more, and
// whoever made this sandbox has forgotten it.
bool root_is_gone() {
  struct stat root{};
  return ::stat("/", &root) == 0 && root.st_nlink == 0;
}

class Supervisor {
 public:
  Supervisor(std::string memo, const std::function<int(Memo)>& work)
      : memo_(std::move(memo)), work_(work), first_of_all_(::getpid() == 1) {}

  int run() {
    block_signals();
    int short_lives = 0;
    for (;;) {
      const base::Moment began = now();
      if (const auto over = run_child()) return *over;
      short_lives = now() - began < kShortLife ? short_lives + 1 : 0;
      const auto delay = restart_delay(short_lives);
      base::log::warn("the serving process ended; starting it again",
                      {{"status", status_}, {"delay_ms", delay.count()}});
      if (const auto over = watch_until(now() + delay)) return *over;
    }
  }

 private:
  void block_signals() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&signals_, number);
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    arrived_ = base::Fd(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  std::optional<int> run_child() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
    line_ = base::Fd(ends[0]);
    base::Fd childs_end(ends[1]);
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) return std::nullopt;
    if (child_ == 0) be_the_child(parent, std::move(childs_end));
    childs_end.reset();
    const auto over = watch_until(std::nullopt);
    if (over) return over;
    const bool own_choice = WIFEXITED(status_) && WEXITSTATUS(status_) != 0;
    if (!served_ && own_choice) return WEXITSTATUS(status_);
    return std::nullopt;
  }

  [[noreturn]] void be_the_child(pid_t parent, base::Fd socket) {
    line_.reset();
    arrived_.reset();
    // Nobody would start it again without its parent, and the parent's lock would stay taken.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::_exit(work_(Memo(std::move(socket), memo_)));
  }

  // Until the child has ended (with `until`: there is none, only time to pass). A number: it is
  // over.
  std::optional<int> watch_until(std::optional<base::Moment> until) {
    while (until || child_ > 0) {
      // The first of all is the one with whom everything here ends.
      int wait_ms = first_of_all_ ? static_cast<int>(kLookAtRoot.count()) : -1;
      if (first_of_all_ && root_is_gone()) return 0;
      if (until) {
        wait_ms = static_cast<int>(std::max<std::int64_t>(0, (*until - now()).count()));
        if (wait_ms == 0) return std::nullopt;
      }
      pollfd watched[] = {{arrived_.get(), POLLIN, 0}, {line_.get(), POLLIN, 0}};
      ::poll(watched, line_ ? 2 : 1, wait_ms);
      if (watched[1].revents != 0) take_memo();
      if (const auto over = take_signals()) return over;
      reap();
    }
    return std::nullopt;
  }

  void take_memo() {
    std::string memo(kMemoBytesMax, '\0');
    const ssize_t got = ::recv(line_.get(), memo.data(), memo.size(), 0);
    if (got <= 0) {
      if (got == 0 || (errno != EINTR && errno != EAGAIN)) line_.reset();
      return;
    }
    memo.resize(static_cast<std::size_t>(got));
    memo_ = std::move(memo);
    served_ = true;
  }

  std::optional<int> take_signals() {
    signalfd_siginfo info{};
    while (::read(arrived_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGCHLD || first_of_all_) continue;
      if (child_ > 0) end_child(static_cast<int>(info.ssi_signo));
      return 0;
    }
    return std::nullopt;
  }

  // It has a while to tidy up.
  void end_child(int number) const {
    const base::Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    ::kill(child_, number);
    pollfd ended{handle.get(), POLLIN, 0};
    if (handle) ::poll(&ended, 1, static_cast<int>(kTidyUpWithin.count()));
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  void reap() {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (ended != child_) continue;
      if (line_) take_memo_left();
      child_ = 0;
      status_ = status;
    }
  }

  // What the child said just before its end.
  void take_memo_left() {
    pollfd waiting{line_.get(), POLLIN, 0};
    while (line_ && ::poll(&waiting, 1, 0) > 0) take_memo();
    line_.reset();
  }

  std::string memo_;
  const std::function<int(Memo)>& work_;
  const bool first_of_all_;
  sigset_t signals_{}, before_{};
  base::Fd arrived_, line_;
  pid_t child_ = 0;
  int status_ = 0;
  bool served_ = false;
};

}  // namespace

void Memo::keep(const std::string& content) {
  content_ = content;
  if (content.size() > kMemoBytesMax) {
    base::log::warn("too much to remember across a restart", {{"bytes", content.size()}});
    return;
  }
  static_cast<void>(::send(socket_.get(), content.data(), content.size(), MSG_NOSIGNAL));
}

base::Milliseconds restart_delay(int short_lives) {
  constexpr base::Milliseconds kFirst{100}, kLongest{1000};
  base::Milliseconds delay = kFirst;
  for (int i = 1; i < short_lives && delay < kLongest; ++i) delay *= 2;
  return std::min(delay, kLongest);
}

int supervise(const std::string& first_memo, const std::function<int(Memo)>& work) {
  return Supervisor(first_memo, work).run();
}

}  // namespace executor
