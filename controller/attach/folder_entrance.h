#pragma once

#include <string>

#include "controller/attach/entrance.h"
#include "controller/attach/peer_access.h"
#include "controller/attach/socket_door.h"

namespace controller {

// Beside a folder of manifests: at a Unix socket, for whom its file is open to.
class FolderEntrance final : public Entrance {
 public:
  // All outlive it.
  struct Parts {
    api::ResourceStore& store;
    const base::Clock& clock;
    metrics::Registry& registry;
  };
  FolderEntrance(const Parts& parts, std::string fleet_key, AttachService::WayTo way_to,
                 AttachService::WayFailed way_failed, SocketDoorSettings settings)
      : access_(settings.group),
        service_({parts.store, access_, parts.clock, parts.registry}, std::move(fleet_key),
                 std::move(way_to), std::move(way_failed)),
        door_(service_, std::move(settings)) {}

  void open() override { door_.open(); }
  std::string trouble() const override { return door_.trouble(); }

 private:
  PeerAccess access_;
  AttachService service_;
  SocketDoor door_;
};

}  // namespace controller
