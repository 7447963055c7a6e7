#pragma once

#include "controller/home.h"
#include "controller/poll/connections.h"
#include "controller/transports.h"
#include "libs/kube/queue.h"
#include "libs/metrics/registry.h"

namespace controller {

// How providers are spoken to: with the newest key there is, counted and timed, behind the fence of
// the mandate; and Sandboxes that wait for room are queued when there may be some. Whatever is
// handed in outlives the connections.
Connections::Doors doors_to_providers(Home& home, Transports& transports, kube::Queue& queue,
                                      const base::Clock& clock, metrics::Registry& registry);

}  // namespace controller
