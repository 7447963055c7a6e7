#include "controller/sweep/plan.h"

#include <algorithm>

namespace controller {

Ownership ownership_of(const e2b::SandboxInfo& box, const api::Sandbox* owner) {
  if (!owner) return Ownership::kOrphan;
  if (owner->status.sandbox_id == box.id) return Ownership::kOwned;
  const auto attempt = api::attempt_of(owner->metadata);
  const std::int64_t known = std::max(owner->status.epoch, attempt ? attempt->epoch : 0);
  // A higher epoch than the resource knows: its record was restored from before; never killed.
  if (epoch_of(box) > known) return Ownership::kOwned;
  if (!owner->status.sandbox_id.empty()) return Ownership::kSurplus;
  // Unbound, and no attempt on record any more: the reconciler adopts it.
  if (!attempt) return Ownership::kOwned;
  const bool made_by_attempt =
      metadata_at(box, key::kNonce) == attempt->nonce && epoch_of(box) == attempt->epoch;
  return made_by_attempt ? Ownership::kOwned : Ownership::kSurplus;
}

std::vector<Condemned> plan_sweep(const Fleet& fleet) {
  std::map<std::string, const api::Sandbox*> by_uid;
  std::set<std::string> bound;
  for (const auto& sandbox : fleet.sandboxes) {
    by_uid[sandbox->metadata.uid] = sandbox.get();
    bound.insert(sandbox->status.sandbox_id);
  }
  std::vector<Condemned> condemned;
  for (const auto& box : fleet.boxes) {
    const std::string uid = metadata_at(box, key::kUid);
    if (metadata_at(box, key::kFleet) != fleet.id || uid.empty()) continue;
    if (fleet.released.contains(box.id) || bound.contains(box.id)) continue;
    const auto seen = fleet.first_seen.find(box.id);
    if (seen == fleet.first_seen.end() || fleet.now < seen->second + fleet.grace) continue;
    const auto owner = by_uid.find(uid);
    const Ownership why = ownership_of(box, owner == by_uid.end() ? nullptr : owner->second);
    if (why != Ownership::kOwned) condemned.push_back({box, why});
  }
  return condemned;
}

}  // namespace controller
