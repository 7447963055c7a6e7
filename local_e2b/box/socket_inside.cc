#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "libs/base/files.h"
#include "local_e2b/box/box.h"

namespace local_e2b {

// The namespace is entered by a thread that ends with it: there is no way back that could fail and
// leave a thread of the server inside a box.
base::Result<base::Fd> Boxes::socket_inside(const BoxRecord& record) const {
  const std::filesystem::path file =
      std::filesystem::path("/proc") / std::to_string(record.init_pid) / "ns/net";
  const base::Fd space(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return base::errno_error("open", file, errno);
  // Asked after the opening: so the namespace is not that of a newcomer with the same pid.
  if (!alive(record))
    return base::error(base::ErrorCode::kNotFound, "box ", record.id, " is not running");

  int made = -1, failure = 0;
  std::thread([&] {
    if (::setns(space.get(), CLONE_NEWNET) == 0)
      made = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) failure = errno;
  }).join();
  if (made < 0) return base::errno_error("make a socket in the network of", record.id, failure);
  // So that a server of the box that sets this too, as servers do, gets its port even where one of
  // our connections happens to leave from there, or did within the last minute.
  const int on = 1;
  ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return base::Fd(made);
}

}  // namespace local_e2b
