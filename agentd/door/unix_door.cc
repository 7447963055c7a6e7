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

constexpr mode_t kFolderMode = 0755;

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

UnixDoor::UnixDoor(aio::Executor executor, aio::Background& background, UnixDoorSettings settings,
                   Serve serve)
    : executor_(std::move(executor)),
      background_(background),
      settings_(std::move(settings)),
      serve_(std::move(serve)),
      listener_({.name = "agentd",
                 .path = settings_.path,
                 .rights = settings_.rights,
                 .folder_mode = kFolderMode}) {}

base::Result<std::unique_ptr<UnixDoor>> UnixDoor::at(aio::Executor executor,
                                                     aio::Background& background,
                                                     UnixDoorSettings settings, Serve serve) {
  std::unique_ptr<UnixDoor> door(
      new UnixDoor(std::move(executor), background, std::move(settings), std::move(serve)));
  CHECK_OK(door->look());
  return door;
}

base::Result<base::Done> UnixDoor::look() {
  return listener_.look([this] { fresh_.reset(); },
                        [this](base::Fd made) -> base::Result<base::Done> {
                          fresh_ = std::move(made);
                          return base::Done{};
                        });
}

aio::Task<> UnixDoor::open() {
  for (;;) {
    if (fresh_) {
      co_await aio::race(accept_all(executor_, std::move(fresh_),
                                    [this](base::Fd connection) { admit(std::move(connection)); }),
                         until_gone());
    } else {
      co_await aio::sleep_for(settings_.look);
    }
    // Whoever else has the place is waited for.
    static_cast<void>(co_await background_.run([this] { return look(); }));  // trouble() tells.
  }
}

aio::Task<> UnixDoor::until_gone() {
  while (listener_.stands()) co_await aio::sleep_for(settings_.look);
}

void UnixDoor::admit(base::Fd connection) {
  const auto peer = base::peer_of(connection.get());
  if (!peer) return;  // It has gone.
  if (!admits(settings_.allowed, *peer)) {
    base::log::warn("a peer was turned away", {{"peer", name_of(*peer)}});
    turn_away(connection, "uid " + std::to_string(peer->uid) +
                              " may not attach here: agentd allows others (--allow-uid, "
                              "--allow-gid)");
    return;
  }
  serve_(aio::Stream::over(executor_, std::move(connection)), {.name = name_of(*peer)});
}

}  // namespace agentd
