#include "executor/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "executor/confine/landlock.h"
#include "executor/process/pty.h"
#include "executor/process/reaper.h"
#include "executor/process/vfork_thread.h"
#include "libs/base/descriptors.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

using Step = LaunchStep;

struct Pipe {
  base::Fd read, write;
};

base::Error none_to_be_had(const char* what) {
  return base::error(base::ErrorCode::kRateLimited, "cannot make a ", what, ": ",
                     std::strerror(errno));
}

base::Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return none_to_be_had("pipe");
  return Pipe{base::Fd(ends[0]), base::Fd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// All that the child needs, laid out before the fork: other threads may hold the allocator's lock.
struct Prepared {
  std::vector<std::string> argv, env, programs;
  std::vector<char*> argv_pointers, env_pointers, program_pointers, shell_pointers;
  std::string cwd, not_found, not_allowed;
  std::vector<gid_t> groups;
  uid_t uid = 0;
  gid_t gid = 0;
  bool switch_user = false;
  bool terminal = false;
  bool like_a_shell = true;
  int confinement = -1;
  int reaper_end = -1;  // Its side of the socket; -1: no reaper.
  pid_t dies_with = 0;  // The parent without whom it must not live.
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;
  base::Fd group;      // Its folder.
  bool moves = false;  // It is yet to enter that.
  std::optional<std::size_t> descriptors;
  int report = -1;
};

Prepared prepare(const Launch& wanted) {
  Prepared child;
  child.argv = wanted.argv;
  child.env.reserve(wanted.env.size());
  for (const auto& [name, value] : wanted.env) {
    std::string& entry = child.env.emplace_back(name);
    entry += '=';
    entry += value;
  }
  child.programs = search_path(wanted.argv[0], wanted.env);
  child.argv_pointers = pointers(child.argv);
  child.env_pointers = pointers(child.env);
  child.program_pointers = pointers(child.programs);
  // Room for "/bin/sh FILE ARGS...", when the file turns out to be a script without #!.
  child.shell_pointers = {const_cast<char*>("/bin/sh"), nullptr};
  for (std::size_t i = 1; i < child.argv_pointers.size(); ++i)
    child.shell_pointers.push_back(child.argv_pointers[i]);
  child.cwd = wanted.cwd;
  child.not_found = wanted.argv[0] + ": not found\n";
  child.not_allowed = wanted.argv[0] + ": cannot be executed\n";
  child.groups = wanted.user.groups;
  child.uid = wanted.user.uid;
  child.gid = wanted.user.gid;
  child.switch_user = wanted.switch_user;
  child.terminal = wanted.terminal.has_value();
  child.like_a_shell = wanted.like_a_shell;
  if (wanted.confinement) child.confinement = wanted.confinement->get();
  child.descriptors = wanted.descriptors;
  return child;
}

LEAVES_NO_FRAME [[noreturn]] void give_up(const Prepared& child, Step step) {
  const LaunchFailure failure{step, errno};
  static_cast<void>(!::write(child.report, &failure, sizeof failure));
  ::_exit(127);
}

void close_on_exec_from(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = static_cast<int>(first); fd < 65536; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void forget_signals() {
  // Raw, so that the two that the C library keeps for itself are reset too (its signal() refuses).
  struct {
    void (*handler)(int) = SIG_DFL;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    unsigned long mask = 0;
  } const untouched;
  for (int number = 1; number < NSIG; ++number)
    ::syscall(SYS_rt_sigaction, number, &untouched, nullptr, sizeof untouched.mask);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Raw calls: the C library's wrappers want to change every thread, and there is but this one.
bool become_user(const Prepared& child) {
  return ::syscall(SYS_setgroups, child.groups.size(), child.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, child.gid, child.gid, child.gid) == 0 &&
         ::syscall(SYS_setresuid, child.uid, child.uid, child.uid) == 0;
}

LEAVES_NO_FRAME [[noreturn]] void execute(Prepared& child) {
  bool found = false;
  int reason = ENOENT;  // Of the first that is there.
  for (char* program : child.program_pointers) {
    if (!program) break;
    ::execve(program, child.argv_pointers.data(), child.env_pointers.data());
    const int failed = errno;
    if (failed == ENOEXEC && child.like_a_shell) {
      child.shell_pointers[1] = program;
      ::execve("/bin/sh", child.shell_pointers.data(), child.env_pointers.data());
    }
    // A folder that this user may not search holds nothing as far as it can know.
    if (found || ::access(program, F_OK) != 0) continue;
    found = true;
    reason = failed;
  }
  if (!child.like_a_shell) {
    errno = reason;
    give_up(child, Step::kProgram);
  }
  const std::string& message = found ? child.not_allowed : child.not_found;
  static_cast<void>(!::write(2, message.data(), message.size()));
  ::_exit(found ? 126 : 127);
}

bool enter(const base::Fd& group) {
  const int door = ::openat(group.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC);
  return door >= 0 && ::write(door, "0", 1) == 1;
}

// Only what POSIX allows between fork and exec.
LEAVES_NO_FRAME [[noreturn]] void run_child(Prepared& child) {
  if (child.moves && !enter(child.group)) give_up(child, Step::kGroup);
  ::setsid();
  if (child.terminal && ::ioctl(child.stdin_fd, TIOCSCTTY, 0) != 0) give_up(child, Step::kTerminal);
  // Our own descriptors are all above 2: the program opens the three at its start.
  if (::dup2(child.stdin_fd, 0) < 0 || ::dup2(child.stdout_fd, 1) < 0 ||
      ::dup2(child.stderr_fd, 2) < 0)
    give_up(child, Step::kDescriptors);
  close_on_exec_from(3);
  if (child.descriptors) base::set_descriptor_limit(*child.descriptors);
  forget_signals();
  if (child.switch_user && !become_user(child)) give_up(child, Step::kUser);
  // A change of user takes this back, so it comes afterwards.
  if (child.dies_with != 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != child.dies_with) ::_exit(127);
  }
  if (::chdir(child.cwd.c_str()) != 0) give_up(child, Step::kFolder);
  if (child.confinement >= 0 && !enter_confinement(child.confinement))
    give_up(child, Step::kConfinement);
  execute(child);
}

LEAVES_NO_FRAME [[noreturn]] void run_prepared(void* child) {
  run_child(*static_cast<Prepared*>(child));
}

[[noreturn]] void run_under_reaper(Prepared& child) {
  become_reaper();
  child.dies_with = ::getpid();
  // Raw, as the C library's fork would ask for locks that a thread of ours may hold.
  const auto leader = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (leader == 0) run_child(child);
  if (leader < 0) give_up(child, Step::kDescriptors);
  reap_tree(child.reaper_end, leader);
}

// Born in its group: a move waits until all of the kernel has taken note, 8 ms and more. It moves
// where an old kernel or a filter of system calls leaves no other way.
pid_t fork_into_group(const std::shared_ptr<Prepared>& prepared, VforkThread* vforks) {
  Prepared& child = *prepared;
  if (child.group) {
    clone_args wanted{};
    wanted.flags = CLONE_INTO_CGROUP;
    wanted.exit_signal = SIGCHLD;
    wanted.cgroup = static_cast<std::uint64_t>(child.group.get());
    if (vforks)
      if (const auto pid = vforks->begin(wanted, run_prepared, prepared)) return *pid;
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &wanted, sizeof wanted));
    if (pid >= 0) return pid;
    child.moves = true;
  }
  return ::fork();
}

// The report pipe ends without a word when the new program, or its excuse, takes over.
std::optional<LaunchFailure> read_report(int report) {
  LaunchFailure failure{};
  for (;;) {
    const ssize_t got = ::read(report, &failure, sizeof failure);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
    return failure;
  }
}

struct ChildEnds {
  base::Fd stdin_end, stdout_end, stderr_end;
};

// /dev/null, for a stream that nobody wants.
base::Result<base::Fd> open_nothing(int how) {
  base::Fd nothing(::open("/dev/null", how | O_CLOEXEC));
  if (!nothing) return none_to_be_had("door to /dev/null");
  return nothing;
}

base::Result<base::Done> make_output(bool discard, base::Fd& ours, base::Fd& theirs) {
  if (discard) {
    TRY(theirs, open_nothing(O_WRONLY));
    return base::Done{};
  }
  TRY(Pipe pipe, make_pipe());
  ours = std::move(pipe.read);
  theirs = std::move(pipe.write);
  return base::Done{};
}

base::Result<base::Done> make_pipes(const Launch& wanted, Launched& ours, ChildEnds& theirs) {
  if (wanted.keep_stdin) {
    TRY(Pipe in, make_pipe());
    theirs.stdin_end = std::move(in.read);
    ours.stdin_end = std::move(in.write);
  } else {
    TRY(theirs.stdin_end, open_nothing(O_RDONLY));
  }
  CHECK_OK(make_output(wanted.discard_stdout, ours.stdout_end, theirs.stdout_end));
  return make_output(wanted.discard_stderr, ours.stderr_end, theirs.stderr_end);
}

base::Result<base::Done> make_ends(const Launch& wanted, Launched& ours, ChildEnds& theirs) {
  if (!wanted.terminal) return make_pipes(wanted, ours, theirs);
  TRY(Terminal terminal, open_terminal(*wanted.terminal, wanted.user, wanted.switch_user));
  ours.terminal = std::move(terminal.master);
  theirs.stdin_end = std::move(terminal.slave);
  return base::Done{};
}

}  // namespace

std::vector<std::string> search_path(const std::string& program,
                                     const std::map<std::string, std::string>& env) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> places;
  const auto path = env.find("PATH");
  if (program.empty() || path == env.end()) return places;
  for (const std::string& folder : base::split(path->second, ':'))
    places.push_back((folder.empty() ? "." : folder) + "/" + program);
  return places;
}

base::Error describe(const LaunchFailure& failure, const Launch& wanted) {
  using base::ErrorCode;
  const std::string why = std::strerror(failure.error_number);
  switch (failure.step) {
    case Step::kFolder:
      return base::error(ErrorCode::kInvalid, "cannot start in '", wanted.cwd, "': ", why);
    case Step::kUser:
      return base::error(ErrorCode::kUnavailable, "cannot become '", wanted.user.name, "': ", why);
    case Step::kGroup:
      return base::error(ErrorCode::kUnavailable, "cannot enter the cgroup: ", why);
    case Step::kConfinement:
      return base::error(ErrorCode::kUnavailable, "cannot confine the new process: ", why);
    case Step::kProgram:
      return base::error(ErrorCode::kInvalid, "cannot execute '", wanted.argv[0], "': ", why);
    case Step::kTerminal:
    case Step::kDescriptors:
      break;
  }
  return base::error(ErrorCode::kUnavailable, "cannot set up the new process: ", why);
}

base::Result<Launched> begin_launch(const Launch& wanted, VforkThread* vforks) {
  const auto prepared = std::make_shared<Prepared>(prepare(wanted));
  Prepared& child = *prepared;
  Launched ours;
  ChildEnds theirs;
  CHECK_OK(make_ends(wanted, ours, theirs));
  child.stdin_fd = theirs.stdin_end.get();
  child.stdout_fd = wanted.terminal ? child.stdin_fd : theirs.stdout_end.get();
  child.stderr_fd = wanted.terminal ? child.stdin_fd : theirs.stderr_end.get();
  if (wanted.group) {
    child.group = base::Fd(::open(wanted.group->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!child.group) return none_to_be_had("door to the cgroup");
  }
  base::Fd reapers_end;
  if (wanted.under_reaper) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return none_to_be_had("socket for the reaper");
    ours.reaper = base::Fd(ends[0]);
    reapers_end = base::Fd(ends[1]);
    child.reaper_end = reapers_end.get();
  }
  TRY(Pipe report, make_pipe());
  child.report = report.write.get();
  ours.report = std::move(report.read);

  ours.pid = fork_into_group(prepared, wanted.under_reaper ? nullptr : vforks);
  if (ours.pid < 0) return none_to_be_had("process");
  if (ours.pid == 0) {
    if (wanted.under_reaper) run_under_reaper(child);
    run_child(child);
  }
  ours.pidfd = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, ours.pid, 0)));
  if (!ours.pidfd) {
    const auto failed = none_to_be_had("handle of the process");
    ours.reaper.reset();  // A reaper takes its tree along.
    if (!wanted.under_reaper) ::kill(ours.pid, SIGKILL);
    reapers_end.reset();
    ::waitpid(ours.pid, nullptr, 0);
    return failed;
  }
  return ours;
}

base::Result<Launched> launch(const Launch& wanted) {
  TRY(Launched launched, begin_launch(wanted));
  const auto failure = read_report(launched.report.get());
  launched.report.reset();
  if (!failure) return launched;
  ::waitpid(launched.pid, nullptr, 0);
  return describe(*failure, wanted);
}

}  // namespace executor
