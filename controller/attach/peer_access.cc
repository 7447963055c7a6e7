#include "controller/attach/peer_access.h"

#include <unistd.h>

#include <algorithm>

namespace controller {

bool may_ask(const base::Peer& peer, uid_t ours, std::optional<gid_t> group) {
  if (peer.uid == 0 || peer.uid == ours) return true;
  return group && (peer.gid == *group || std::ranges::count(peer.groups, *group) > 0);
}

base::Result<std::string> PeerAccess::admit(const Asker& asker, const api::Key&, std::stop_token) {
  if (!asker.peer)
    return base::error(base::ErrorCode::kUnavailable, "the kernel did not tell who asks");
  const std::string name = "uid:" + std::to_string(asker.peer->uid);
  if (may_ask(*asker.peer, ::geteuid(), group_)) return name;
  return base::error(base::ErrorCode::kDenied, name,
                     " may not ask: run as the controller does, or start it with "
                     "--attach-socket-group and a group of yours");
}

}  // namespace controller
