#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/reconcile/observation.h"
#include "libs/api/sandbox.h"
#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"

namespace controller {

// Whose an E2B sandbox is, going by the resource that carries its UID.
enum class Ownership {
  kOwned,    // Bound, or what the attempt on record made; or not for us to judge.
  kSurplus,  // Its UID is alive, but with another one.
  kOrphan,   // Nothing carries its UID.
};

// `owner`: the resource of its UID, or null.
Ownership ownership_of(const e2b::SandboxInfo& sandbox, const api::Sandbox* owner);

// What one sweep goes by. The list was taken before the resources were read, so everything in it
// whose intent was recorded has its owner among them.
struct Fleet {
  std::string id;
  std::vector<e2b::SandboxInfo> sandboxes;
  std::vector<std::shared_ptr<const api::Sandbox>> resources;
  std::set<std::string> released;                  // Ids of the release record.
  std::map<std::string, base::Moment> first_seen;  // When this process first listed each id.
  base::Moment now;
  base::Milliseconds grace{120'000};
};

struct Condemned {
  e2b::SandboxInfo sandbox;
  Ownership why;
};

// Those to be killed, each after one more look at its owner. Never one of another fleet, of the
// release record, or younger than the grace.
std::vector<Condemned> plan_sweep(const Fleet& fleet);

}  // namespace controller
