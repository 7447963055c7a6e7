#pragma once

#include <string>

#include "controller/attach/entrance.h"
#include "controller/attach/https_door.h"
#include "controller/attach/reviewed_access.h"

namespace controller {

// In a cluster: over HTTPS, by the API server's word.
class ClusterEntrance final : public Entrance {
 public:
  // All outlive it.
  struct Parts {
    kube::Client& client;  // For reviews and certificates.
    api::ResourceStore& store;
    const base::Clock& clock;
    metrics::Registry& registry;
  };
  ClusterEntrance(const Parts& parts, std::string fleet_key, AttachService::WayTo way_to,
                  AttachService::WayFailed way_failed, HttpsDoorSettings settings)
      : reviewer_(parts.client),
        access_(reviewer_, parts.clock),
        service_({parts.store, access_, parts.clock, parts.registry}, std::move(fleet_key),
                 std::move(way_to), std::move(way_failed)),
        door_(service_, parts.client, parts.clock, parts.registry, std::move(settings)) {}

  void open() override { door_.open(); }
  std::string trouble() const override { return door_.trouble(); }

 private:
  ClusterReviewer reviewer_;
  ReviewedAccess access_;
  AttachService service_;
  HttpsDoor door_;
};

}  // namespace controller
