#include "controller/doors.h"

#include <utility>

#include "controller/fence/fence.h"
#include "controller/metrics.h"

namespace controller {

Connections::Doors doors_to_providers(Home& home, Transports& transports, kube::Queue& queue,
                                      const base::Clock& clock, metrics::Registry& registry) {
  // Of the provider as it is now: a document may name another key since it was connected.
  const auto key_of = [&home](const api::SandboxProvider& provider) {
    const auto present = home.store().find_provider(provider.metadata.key.name);
    return home.api_key(present ? *present : provider);
  };
  return {.api_key = key_of,
          .connect =
              [&, key_of](const api::SandboxProvider& provider) {
                auto cloud = transports.connect(provider, clock, key_of);
                return fenced(measured(std::move(cloud), clock, registry), home.mandate(),
                              provider.metadata.key.name);
              },
          .room_again =
              [&](const std::string& provider) {
                queue_what_waits_for_room(queue, home.store(), provider);
              }};
}

}  // namespace controller
