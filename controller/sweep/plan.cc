#include "controller/sweep/plan.h"

#include <algorithm>

namespace controller {

Ownership ownership_of(const e2b::SandboxInfo& sandbox, const api::Sandbox* owner) {
  if (!owner) return Ownership::kOrphan;
  if (owner->status.sandbox_id == sandbox.id) return Ownership::kOwned;
  const auto attempt = api::attempt_of(owner->metadata);
  const std::int64_t known = std::max(owner->status.epoch, attempt ? attempt->epoch : 0);
  // A higher epoch than the resource knows: its record was restored from before; never killed.
  if (epoch_of(sandbox) > known) return Ownership::kOwned;
  if (!owner->status.sandbox_id.empty()) return Ownership::kSurplus;
  // Unbound, and no attempt on record any more: the reconciler adopts it.
  if (!attempt) return Ownership::kOwned;
  const bool made_by_attempt =
      metadata_at(sandbox, key::kNonce) == attempt->nonce && epoch_of(sandbox) == attempt->epoch;
  return made_by_attempt ? Ownership::kOwned : Ownership::kSurplus;
}

std::vector<Condemned> plan_sweep(const Fleet& fleet) {
  std::map<std::string, const api::Sandbox*> by_uid;
  std::set<std::string> bound;
  for (const auto& resource : fleet.resources) {
    by_uid[resource->metadata.uid] = resource.get();
    bound.insert(resource->status.sandbox_id);
  }
  std::vector<Condemned> condemned;
  for (const auto& sandbox : fleet.sandboxes) {
    const std::string uid = metadata_at(sandbox, key::kUid);
    if (metadata_at(sandbox, key::kFleet) != fleet.id || uid.empty()) continue;
    if (fleet.released.contains(sandbox.id) || bound.contains(sandbox.id)) continue;
    const auto seen = fleet.first_seen.find(sandbox.id);
    if (seen == fleet.first_seen.end() || fleet.now < seen->second + fleet.grace) continue;
    const auto owner = by_uid.find(uid);
    const Ownership why = ownership_of(sandbox, owner == by_uid.end() ? nullptr : owner->second);
    if (why != Ownership::kOwned) condemned.push_back({sandbox, why});
  }
  return condemned;
}

}  // namespace controller
