#pragma once

#include <optional>

#include "libs/api/resource_store.h"
#include "libs/base/json.h"

namespace kube {

// What an events.k8s.io/v1 Event tells, also one that came through the older API; nothing when it
// does not say what it is about.
std::optional<api::RecordedEvent> recorded_event_from(const base::Json& event);

}  // namespace kube
