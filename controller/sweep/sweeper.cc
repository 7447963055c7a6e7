#include "controller/sweep/sweeper.h"

#include <algorithm>

#include "libs/base/log.h"

namespace controller {
namespace {

constexpr int kMissesToPrune = 2;  // In as many sweeps, each by a list and a GET.

}  // namespace

Sweeper::Sweeper(api::ResourceStore& store, Providers& providers, const base::Clock& clock,
                 base::Milliseconds grace)
    : store_(store), providers_(providers), clock_(clock), grace_(grace) {}

base::Result<Swept> Sweeper::sweep(const std::string& provider, std::stop_token stop) {
  std::lock_guard lock(mutex_);
  auto session = providers_.session(provider);
  if (!session) return base::Error(session.error());
  e2b::Cloud& cloud = session->gate->as(Priority::kPoll);
  Fleet fleet{.id = store_.fleet_id(), .now = clock_.now(), .grace = grace_};
  TRY(auto listed, cloud.list({{{key::kFleet, fleet.id}}}, stop));
  fleet.sandboxes = std::move(listed.value);
  fleet.resources = store_.sandboxes();
  TRY(const auto releases, store_.releases(provider));
  for (const auto& release : releases) fleet.released.insert(release.sandbox_id);

  std::set<std::string> ids;
  auto& first_seen = seen_[provider].first_listed;
  for (const auto& sandbox : fleet.sandboxes) {
    ids.insert(sandbox.id);
    first_seen.try_emplace(sandbox.id, fleet.now);
  }
  std::erase_if(first_seen, [&](const auto& seen) { return !ids.contains(seen.first); });
  fleet.first_seen = first_seen;

  Swept swept;
  for (const Condemned& each : plan_sweep(fleet)) {
    if (stop.stop_requested()) break;
    ++(each.why == Ownership::kOrphan ? swept.orphans : swept.surplus);
    TRY(const bool condemned, still_condemned(each.sandbox));
    if (!condemned) continue;
    if (const auto killed = session->gate->as(Priority::kDelete).kill(each.sandbox.id, stop)) {
      ++swept.killed;
      base::log::info("killed an E2B sandbox that nothing owns",
                      {{"id", each.sandbox.id}, {"uid", metadata_at(each.sandbox, key::kUid)}});
    } else {
      base::log::warn("cannot kill an E2B sandbox that nothing owns",
                      {{"id", each.sandbox.id}, {"error", killed.error()}});
    }
  }
  prune_releases(provider, ids, cloud, stop);
  return swept;
}

void Sweeper::keep_only(const std::set<std::string>& providers) {
  std::lock_guard lock(mutex_);
  std::erase_if(seen_, [&](const auto& each) { return !providers.contains(each.first); });
}

// The owner as it is now, past every cache.
base::Result<bool> Sweeper::still_condemned(const e2b::SandboxInfo& sandbox) {
  TRY(const auto owner, store_.get_sandbox({metadata_at(sandbox, key::kNamespace),
                                            metadata_at(sandbox, key::kName)}));
  const bool same = owner && owner->metadata.uid == metadata_at(sandbox, key::kUid);
  return ownership_of(sandbox, same ? &*owner : nullptr) != Ownership::kOwned;
}

// A record goes once its sandbox is proven to be gone.
void Sweeper::prune_releases(const std::string& provider, const std::set<std::string>& listed,
                             e2b::Cloud& cloud, std::stop_token stop) {
  const auto releases = store_.releases(provider);
  if (!releases) return;
  auto& misses = seen_[provider].release_misses;
  std::erase_if(misses, [&](const auto& missed) {
    return std::ranges::none_of(
        *releases, [&](const auto& release) { return release.sandbox_id == missed.first; });
  });
  for (const auto& release : *releases) {
    const std::string& id = release.sandbox_id;
    if (listed.contains(id)) {  // No look of its own: one list is all that a steady fleet costs.
      misses.erase(id);
      continue;
    }
    const auto info = cloud.get(id, stop);
    if (!info) continue;
    const bool settled =
        info->value || (++misses[id] >= kMissesToPrune && store_.remove_release(provider, id));
    if (settled) misses.erase(id);
  }
}

}  // namespace controller
