#pragma once

#include <string>

#include "controller/attach/door.h"

namespace controller {

// The attach service of a cluster, with all that it is made of.
class Entrance {
 public:
  // All outlive it.
  struct Parts {
    kube::Client& client;  // For reviews and certificates.
    const api::ResourceStore& store;
    const base::Clock& clock;
    metrics::Registry& registry;
  };
  Entrance(const Parts& parts, std::string fleet_key, AttachService::WayTo way_to,
           DoorSettings settings)
      : reviewer_(parts.client),
        access_(reviewer_, parts.clock),
        service_({parts.store, access_, parts.clock, parts.registry}, std::move(fleet_key),
                 std::move(way_to)),
        door_(service_, parts.client, parts.clock, parts.registry, std::move(settings)) {}

  // Once the store is complete: what is not in it is told to be nowhere.
  void open() { door_.open(); }
  // Why nobody is let in; empty when they are.
  std::string trouble() const { return door_.trouble(); }

 private:
  ClusterReviewer reviewer_;
  Access access_;
  AttachService service_;
  Door door_;
};

}  // namespace controller
