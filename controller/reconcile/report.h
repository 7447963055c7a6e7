#pragma once

#include <optional>

#include "controller/reconcile/decide.h"
#include "libs/api/resource_store.h"
#include "libs/kube/queue.h"

namespace controller {

// What came of an action: done, begun as an Operation, or failed.
struct Outcome {
  std::optional<base::Error> error = {};
  bool begun = false;    // An Operation runs; it re-queues the key.
  bool written = false;  // The store holds a newer object than the one that was seen.
};

struct Report {
  api::SandboxStatus status;
  bool write = false;  // Status is worth a write now.
  api::ResourceStore::Durability durability = api::ResourceStore::Durability::kSoon;
  std::optional<api::Event> event = {};
  kube::Requeue requeue = {};
};

// What people are told, and when to look again. Pure.
Report report(const Observation& seen, const Action& action, const Outcome& outcome);

// The status that a bind writes: epoch, incarnation, conditions.
api::SandboxStatus bound_status(const Observation& seen, const Bind& step);

}  // namespace controller
