#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <memory>

#include "libs/base/files.h"
#include "local_e2b/box/box.h"

namespace local_e2b {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;

struct Errand {
  int init;  // A handle of the process in whose network the socket is to be.
  int socket = -1;
  int failure = 0;
};

int fetch_socket(void* argument) {
  auto& errand = *static_cast<Errand*>(argument);
  if (::setns(errand.init, CLONE_NEWUSER | CLONE_NEWNET) == 0)
    errand.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (errand.socket < 0) errand.failure = errno;
  return 0;
}

// A thread may not enter a user namespace, and whoever is not the host's root may enter a network
// only by way of its user namespace. So somebody goes who is no thread but shares our memory and
// descriptors for the moment that we stand still; he never comes back, so nothing of this process
// can be left inside.
void send_for_socket(Errand& errand) {
  const auto stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // Our handlers are for us to run.
  const pid_t child = ::clone(fetch_socket, stack.get() + kStackBytes,
                              CLONE_VM | CLONE_FILES | CLONE_VFORK, &errand);
  if (child < 0) errand.failure = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (child > 0 && ::waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
}

}  // namespace

base::Result<base::Fd> Boxes::socket_inside(const BoxRecord& record) const {
  const base::Fd init(static_cast<int>(::syscall(SYS_pidfd_open, record.init_pid, 0)));
  // Asked after the opening: so it is not a newcomer with the same pid.
  if (!init || !alive(record))
    return base::error(base::ErrorCode::kNotFound, "box ", record.id, " is not running");
  Errand errand{init.get()};
  send_for_socket(errand);
  if (errand.socket < 0)
    return base::errno_error("make a socket in the network of", record.id, errand.failure);
  // So that a server of the box that sets this too, as servers do, gets its port even where one of
  // our connections happens to leave from there, or did within the last minute.
  const int on = 1;
  ::setsockopt(errand.socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return base::Fd(errand.socket);
}

}  // namespace local_e2b
