#include "agentd/door/unix_door.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "agentd/door/accept.h"
#include "libs/base/log.h"
#include "libs/wire/frames/message.h"

namespace agentd {
namespace {

std::string name_of(const base::Peer& peer) {
  return "uid " + std::to_string(peer.uid) + " pid " + std::to_string(peer.pid);
}

// It may not be there to read that, and nobody waits for it.
void turn_away(const base::Fd& connection, const std::string& why) {
  const std::string bytes = wire::encode(
      wire::to_frame(wire::Close{.reason = wire::CloseReason::kDenied, .message = why}));
  ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

template <typename Id>
bool contains(const std::vector<Id>& ids, Id id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

bool admits(const Allowed& allowed, const base::Peer& peer) {
  if (allowed.uids.empty() && allowed.gids.empty()) return true;
  if (contains(allowed.uids, peer.uid) || contains(allowed.gids, peer.gid)) return true;
  return std::ranges::any_of(peer.groups, [&](gid_t one) { return contains(allowed.gids, one); });
}

UnixDoor::UnixDoor(aio::Executor executor, const base::UnixListener& listener, Allowed allowed,
                   Serve serve)
    : executor_(std::move(executor)),
      listener_(listener),
      allowed_(std::move(allowed)),
      serve_(std::move(serve)) {}

aio::Task<> UnixDoor::open() {
  auto shared = listener_.share();
  if (!shared) {
    base::log::error("cannot listen", {{"error", shared.error()}});
    co_return;
  }
  co_await accept_all(executor_, *std::move(shared),
                      [this](base::Fd connection) { admit(std::move(connection)); });
}

void UnixDoor::admit(base::Fd connection) {
  const auto peer = base::peer_of(connection.get());
  if (!peer) return;  // It has gone.
  if (!admits(allowed_, *peer)) {
    base::log::warn("a peer was turned away", {{"peer", name_of(*peer)}});
    turn_away(connection, "uid " + std::to_string(peer->uid) +
                              " may not attach here: agentd allows others (--allow-uid, "
                              "--allow-gid)");
    return;
  }
  serve_(aio::Stream::over(executor_, std::move(connection)), {.name = name_of(*peer)});
}

}  // namespace agentd
