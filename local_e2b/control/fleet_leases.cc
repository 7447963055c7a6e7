#include <algorithm>

#include "libs/base/log.h"
#include "local_e2b/control/fleet.h"

// Fleet: how long sandboxes run, and what ends them when nobody asks.
namespace local_e2b {
namespace {

using base::Seconds;
constexpr base::Milliseconds kLookAtBoxes{1'000};
constexpr base::Milliseconds kNoLease{3'600'000};

}  // namespace

// The lease ends `seconds` from now, or when the longest run is over.
Outcome<base::Done> Fleet::lease(Entry& entry, std::int64_t seconds, bool may_shorten) {
  Sandbox& sandbox = entry.sandbox;
  const auto last_end = sandbox.started_at + Seconds(limits_.run_seconds_max);
  if (clock_.wall() >= last_end)
    return refuse(400, "the sandbox has run for the longest time allowed");
  const auto end = std::min(clock_.wall() + Seconds(seconds), last_end);
  if (!may_shorten && end <= sandbox.end_at) return base::Done{};
  const auto before = sandbox.end_at;
  sandbox.end_at = end;
  if (const auto saved = write_down(entry); !saved) {
    sandbox.end_at = before;
    return refuse(503, "the provider cannot write its state: " + saved.error().message);
  }
  leases_.set(sandbox.id, clock_.now() + (end - clock_.wall()));
  leases_changed_.notify_all();
  return base::Done{};
}

Outcome<base::Done> Fleet::set_timeout(const std::string& team, const std::string& id,
                                       std::int64_t seconds) {
  const auto entry = find_own(team, id);
  if (!entry) return not_found(id);
  const Phase phase = entry->sandbox.phase;
  if (phase == Phase::kRunning) return lease(*entry, seconds, true);
  if (phase == Phase::kPausing || phase == Phase::kKilling)
    return refuse(409, "Sandbox \"" + id + "\" is " + std::string(to_word(phase)));
  return not_found(id);
}

Outcome<base::Done> Fleet::refresh(const std::string& team, const std::string& id,
                                   std::int64_t seconds) {
  const auto entry = find_own(team, id);
  if (!entry || entry->sandbox.phase != Phase::kRunning) return set_timeout(team, id, seconds);
  return lease(*entry, seconds, false);
}

void Fleet::expire_due() {
  for (const auto& id : leases_.take_due(clock_.now())) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second->sandbox.phase != Phase::kRunning) continue;
    tasks_.spawn(expire(found->second));
  }
}

aio::Task<> Fleet::expire(EntryPtr entry) {
  const std::string id = entry->sandbox.id;
  if (entry->sandbox.phase != Phase::kRunning) co_return;
  base::log::info("a sandbox's time is over",
                  {{"sandbox", id}, {"then", entry->sandbox.auto_pause ? "pause" : "kill"}});
  const auto ended = entry->sandbox.auto_pause ? co_await do_pause(entry) : co_await do_kill(entry);
  if (!ended && entry->sandbox.phase == Phase::kRunning) {
    leases_.set(id, clock_.now() + limits_.retry);
    leases_changed_.notify_all();
  }
}

aio::Task<> Fleet::keep_leases() {
  for (;;) {
    expire_due();
    const auto next = leases_.next();
    const auto wait = next ? *next - clock_.now() : kNoLease;
    co_await aio::race(leases_changed_.wait(), aio::sleep_for(wait));
  }
}

aio::Task<> Fleet::tend_boxes() {
  for (;;) {
    co_await aio::sleep_for(kLookAtBoxes);
    std::vector<BoxRecord> running;
    for (const auto& [id, entry] : entries_)
      if (entry->sandbox.phase == Phase::kRunning) running.push_back(*entry->sandbox.box);
    if (running.empty()) continue;
    co_await host_.trim_logs(running);
    for (const auto& id : co_await host_.dead_of(std::move(running))) {
      const auto found = entries_.find(id);
      if (found == entries_.end() || found->second->sandbox.phase != Phase::kRunning) continue;
      base::log::warn("a sandbox's init ended by itself", {{"sandbox", id}});
      const auto entry = found->second;
      (void)co_await do_kill(entry);
    }
  }
}

}  // namespace local_e2b
