#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agentd/door/caller.h"
#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/base/fd.h"
#include "libs/base/standing_listener.h"
#include "libs/base/unix_socket.h"

namespace agentd {

// Who may attach, of those whom the socket's mode lets connect: all, or whoever is on one of these.
struct Allowed {
  std::vector<uid_t> uids = {};
  std::vector<gid_t> gids = {};
};
bool admits(const Allowed& allowed, const base::Peer& peer);

struct UnixDoorSettings {
  std::filesystem::path path;  // Its folder is made where there is none.
  base::SocketRights rights = {};
  Allowed allowed = {};
  base::Milliseconds look{1'000};  // Whether the socket still stands; it is made anew.
};

// Where harnesses of this node connect.
class UnixDoor {
 public:
  // Listens; an error: why it cannot. `background` outlives it.
  static base::Result<std::unique_ptr<UnixDoor>> at(aio::Executor executor,
                                                    aio::Background& background,
                                                    UnixDoorSettings settings, Serve serve);

  aio::Task<> open();  // Lets in whoever comes, until it is cancelled.
  // Why nobody can connect; empty when they can. From any thread.
  std::string trouble() const { return listener_.trouble(); }

 private:
  UnixDoor(aio::Executor executor, aio::Background& background, UnixDoorSettings settings,
           Serve serve);
  base::Result<base::Done> look();
  aio::Task<> until_gone();
  void admit(base::Fd connection);

  aio::Executor executor_;
  aio::Background& background_;
  const UnixDoorSettings settings_;
  const Serve serve_;
  base::StandingListener listener_;  // In one place at a time: at(), or the background's work.
  base::Fd fresh_;                   // What was made and is not accepted from yet.
};

}  // namespace agentd
