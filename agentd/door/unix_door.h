#pragma once

#include <sys/types.h>

#include <vector>

#include "agentd/door/caller.h"
#include "libs/aio/task.h"
#include "libs/base/fd.h"
#include "libs/base/unix_socket.h"

namespace agentd {

// Who may attach, of those whom the socket's mode lets connect: all, or whoever is on one of these.
struct Allowed {
  std::vector<uid_t> uids = {};
  std::vector<gid_t> gids = {};
};
bool admits(const Allowed& allowed, const base::Peer& peer);

// Where harnesses of this node connect.
class UnixDoor {
 public:
  // `listener` outlives it.
  UnixDoor(aio::Executor executor, const base::UnixListener& listener, Allowed allowed,
           Serve serve);

  aio::Task<> open();  // Lets in whoever comes, until it is cancelled.

 private:
  void admit(base::Fd connection);

  aio::Executor executor_;
  const base::UnixListener& listener_;
  const Allowed allowed_;
  const Serve serve_;
};

}  // namespace agentd
