#include "controller/reconcile/observation.h"

#include <algorithm>

#include "libs/api/reasons.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace controller {
namespace {

const Sighting* find_sandbox(const Listed& listed, const std::string& id) {
  const auto found = std::ranges::find(listed.sandboxes, id, &Sighting::id);
  return found == listed.sandboxes.end() ? nullptr : &*found;
}

// Two misses by GET, and a full list between or after them that agrees, all newer than our own
// last change.
bool proven_absent(const Memory& memory, const Got* got, const std::string& id) {
  return got && !got->info && got->misses >= 2 && got->first_miss >= memory.changed &&
         memory.listed && memory.listed->started >= got->first_miss &&
         !find_sandbox(*memory.listed, id);
}

base::Seconds settle_of(const Observation& seen) {
  return seen.provider ? seen.provider->spec.settle : api::ProviderSpec{}.settle;
}

Actual found_if_ours(const Sighting& info, const api::Sandbox& wanted) {
  if (info.uid != wanted.metadata.uid) return Foreign{info.id};
  return Found{info};
}

Actual bound_actual(const Observation& seen) {
  const Memory& memory = seen.memory;
  const std::string& id = seen.wanted.status.sandbox_id;
  const auto entry = memory.got.find(id);
  const Got* got = entry == memory.got.end() ? nullptr : &entry->second;
  const bool get_counts = got && got->started >= memory.changed;
  const bool list_counts = memory.listed && memory.listed->started >= memory.changed;

  if (get_counts && got->info && (!list_counts || got->started >= memory.listed->started))
    return found_if_ours(*got->info, seen.wanted);
  if (list_counts) {
    if (const auto* sandbox = find_sandbox(*memory.listed, id)) {
      // A GET that missed it later is the newer witness.
      if (!get_counts || got->started < memory.listed->started) return Found{*sandbox};
    }
  }
  if (proven_absent(memory, got, id)) return ProvenAbsent{};
  if (get_counts || list_counts) return Missing{};
  return Unknown{"not looked at since the last change"};
}

Actual unbound_actual(const Observation& seen) {
  if (!seen.memory.listed) return Unknown{"no complete list yet"};
  const auto attempt = api::attempt_of(seen.wanted.metadata);
  const auto& sandboxes = seen.memory.listed->sandboxes;
  if (!attempt && !sandboxes.empty()) return Found{sandboxes.front()};
  if (!attempt) return settled(seen) ? Actual(NeverTried{}) : Actual(Missing{});
  for (const auto& sandbox : sandboxes)
    if (sandbox.nonce == attempt->nonce && sandbox.epoch == attempt->epoch) return Found{sandbox};
  if (settled(seen)) return ProvenAbsent{};
  return Missing{};
}

}  // namespace

Sighting sighting_of(e2b::SandboxInfo info) {
  return {.id = std::move(info.id),
          .state = info.state,
          .uid = metadata_at(info, key::kUid),
          .nonce = metadata_at(info, key::kNonce),
          .epoch = epoch_of(info),
          .started_at = info.started_at,
          .end_at = info.end_at,
          .envd_version = std::move(info.envd_version)};
}

void outdate(Memory& memory, base::Moment now) {
  memory.changed = now;
  memory.got.clear();
  memory.listed.reset();
}

std::optional<Progress> slow_step(const Observation& seen) {
  const auto& progress = seen.memory.progress;
  if (!seen.operation || !progress || seen.now - progress->since < kSlowStep) return std::nullopt;
  return progress;
}

base::Milliseconds until_slow(const Observation& seen) {
  const auto& progress = seen.memory.progress;
  const auto left = progress ? progress->since + kSlowStep - seen.now : kSlowStep;
  return std::max(left, kSlowStepLook);
}

std::string key_of_run(const std::string& instance,
                       const std::optional<base::WallTime>& started_at) {
  return instance + "@" + (started_at ? base::to_rfc3339(*started_at) : "");
}

bool shows(const Listed& listed, const std::string& id) {
  return find_sandbox(listed, id) != nullptr;
}

void note_shown(Memory& memory, const Listed& listed) {
  for (const auto& sandbox : listed.sandboxes) memory.shown.insert(sandbox.id);
}

bool is_as_got(const Memory& memory, std::span<const Sighting> sandboxes) {
  return !sandboxes.empty() && std::ranges::all_of(sandboxes, [&](const Sighting& sandbox) {
    const auto got = memory.got.find(sandbox.id);
    return got != memory.got.end() && got->second.info &&
           got->second.info->state == sandbox.state &&
           got->second.info->started_at == sandbox.started_at;
  });
}

std::string metadata_at(const e2b::SandboxInfo& info, const char* key) {
  const auto found = info.metadata.find(key);
  return found == info.metadata.end() ? std::string() : found->second;
}

std::int64_t epoch_of(const e2b::SandboxInfo& info) {
  return base::parse_integer(metadata_at(info, key::kEpoch)).value_or(0);
}

std::optional<base::Moment> unclear_send_ended(const Observation& seen) {
  const api::Metadata& metadata = seen.wanted.metadata;
  const auto attempt = api::attempt_of(metadata);
  // An attempt that the store has lost may have been sent before this process began.
  if (!attempt && metadata.annotations.contains(std::string(api::kRecoveredAnnotation)))
    return seen.began;
  if (!attempt) return std::nullopt;
  if (seen.memory.recorded_nonce == attempt->nonce) return seen.memory.unclear_send_ended;
  return std::max(seen.memory.unclear_send_ended.value_or(seen.began), seen.began);
}

base::Moment all_sent_shows(const Observation& seen) {
  return seen.memory.send_ended.value_or(seen.began) + settle_of(seen);
}

bool has_finalizer(const api::Sandbox& wanted) {
  return std::ranges::find(wanted.metadata.finalizers, api::kFinalizer) !=
         wanted.metadata.finalizers.end();
}

bool is_held_as_wanted(const Observation& seen) {
  const HeldBack& held = seen.memory.held;
  return held.failures > 0 && held.generation == seen.wanted.metadata.generation &&
         held.deleting == seen.wanted.deleting();
}

bool is_ready_unheard(const Observation& seen) {
  const auto* ready = api::find_condition(seen.wanted.status, api::condition::kReady);
  return ready != nullptr && ready->status == "True" &&
         seen.memory.executor.kind == ExecutorView::Kind::kUnknown;
}

bool came_true(const Observation& seen) {
  const HeldBack& held = seen.memory.held;
  const auto* found = std::get_if<Found>(&seen.actual);
  const auto due = held.step == "Pause" ? e2b::State::kPaused : e2b::State::kRunning;
  return held.open && found && found->info.state == due;
}

bool settled(const Observation& seen) {
  if (!seen.memory.listed || !seen.memory.listed->sandboxes.empty()) return false;
  const auto ended = unclear_send_ended(seen);
  return seen.memory.listed->started >= seen.began &&
         (!ended || seen.memory.listed->started >= *ended + settle_of(seen));
}

Actual actual_of(const Observation& seen) {
  return seen.wanted.status.sandbox_id.empty() ? unbound_actual(seen) : bound_actual(seen);
}

}  // namespace controller
