#include "controller/reconcile/ending.h"

#include <algorithm>
#include <set>
#include <string>

#include "controller/reconcile/looks.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

// It is on record as ended because it idled, and for no other reason; no DELETE was answered yet.
bool is_to_end_idle(const Observation& seen) {
  const api::SandboxStatus& status = seen.wanted.status;
  return status.ended_by == api::EndedBy::kIdle &&
         !seen.memory.killed.contains(status.sandbox_id) && !seen.wanted.deleting() &&
         due_ending(seen) == api::EndedBy::kNobody;
}

// What works again is not ended: a process that died in between may have let it go on.
std::optional<base::Seconds> ends_if_idle_for(const Observation& seen, const std::string& id) {
  const auto* found = std::get_if<Found>(&seen.actual);
  const bool runs = found && found->info.id == id && found->info.state == e2b::State::kRunning;
  return runs && is_to_end_idle(seen) ? seen.wanted.spec.lifecycle.idle : std::nullopt;
}

// A list may still show what is gone.
bool is_got(const Memory& memory, const std::string& id) {
  const auto got = memory.got.find(id);
  return got != memory.got.end() && got->second.started >= memory.changed && got->second.info;
}

// Before it is ended for having idled it is seen how it stands, and whether that is still wanted.
std::optional<Action> end_idle(const Observation& seen) {
  if (!is_to_end_idle(seen)) return std::nullopt;
  const auto* found = std::get_if<Found>(&seen.actual);
  const bool unclear = found ? found->info.state == e2b::State::kOther
                             : std::holds_alternative<Unknown>(seen.actual) ||
                                   std::holds_alternative<Missing>(seen.actual);
  if (unclear) return look_for_bound(seen);
  const auto& lifecycle = seen.wanted.spec.lifecycle;
  const bool wanted = lifecycle.idle && lifecycle.idle_action == api::IdleAction::kTerminate;
  if (!found || (wanted && !seen.memory.idle.busy)) return std::nullopt;
  if (!is_got(seen.memory, found->info.id)) return look_for_bound(seen);
  return RecordEnding{};
}

// Every id that may be an E2B sandbox of this Sandbox, but `spared`.
std::set<std::string> ids_of(const Observation& seen, const std::string& spared) {
  std::set<std::string> ids;
  if (!std::holds_alternative<Foreign>(seen.actual)) ids.insert(seen.wanted.status.sandbox_id);
  ids.insert(seen.memory.made);
  if (seen.memory.listed)
    for (const auto& sandbox : seen.memory.listed->sandboxes) ids.insert(sandbox.id);
  for (const auto& [id, when] : seen.memory.killed) ids.insert(id);
  ids.erase("");
  ids.erase(spared);
  return ids;
}

// It was seen after its DELETE was answered, or never got one.
bool wants_kill(const Memory& memory, const std::string& id) {
  const auto killed = memory.killed.find(id);
  if (killed == memory.killed.end()) return true;
  if (memory.listed && memory.listed->started > killed->second && shows(*memory.listed, id))
    return true;
  const auto got = memory.got.find(id);
  return got != memory.got.end() && got->second.started > killed->second &&
         got->second.info.has_value();
}

// A DELETE that was answered and did nothing is not repeated at once.
Action kill_again(const Observation& seen, const std::string& id) {
  const auto killed = seen.memory.killed.find(id);
  if (killed == seen.memory.killed.end() || seen.now >= killed->second + kLookAgain)
    return unless_held(seen, Kill{id, ends_if_idle_for(seen, id)});
  return wait(seen.wanted.deleting() ? api::reason::kDeleting : api::reason::kTerminating,
              id + " is still there after it was ended; ending it again",
              killed->second + kLookAgain - seen.now);
}

// An id is looked at before it is killed: a forged status must not point us at somebody else's, and
// one that was shown need not be waited for afterwards.
bool looked_at(const Memory& memory, const std::string& id) {
  return memory.shown.contains(id) || memory.got.contains(id) || memory.killed.contains(id) ||
         (memory.listed && shows(*memory.listed, id));
}

// A full list from after the last kill, and after every create has settled whose answer or whose
// sandbox was not seen yet, that shows nothing of it: the step that is still missing. A DELETE may
// be answered and do nothing, and its sandbox not show for as long as settle.
std::optional<Action> list_after(const Observation& seen, const std::set<std::string>& ids,
                                 base::Moment last_kill, const std::string& spared) {
  const auto& listed = seen.memory.listed;
  if (!listed || listed->started < last_kill) return unless_held(seen, Look{});
  base::Moment earliest = seen.began;
  if (seen.wanted.status.sandbox_id.empty())
    if (const auto ended = unclear_send_ended(seen))
      earliest = std::max(earliest, *ended + seen.provider->spec.settle);
  if (!std::ranges::includes(seen.memory.shown, ids))
    earliest = std::max(earliest, all_sent_shows(seen));
  const bool clean = std::ranges::all_of(
      listed->sandboxes, [&](const Sighting& sandbox) { return sandbox.id == spared; });
  if (clean && listed->started >= earliest) return std::nullopt;
  return look_list(seen,
                   seen.wanted.deleting() ? api::reason::kDeleting : api::reason::kTerminating,
                   "waiting for a complete list that shows nothing of it");
}

// The next step until nothing of this Sandbox but `spared` is left at the provider, or nothing when
// that is proven: DELETE answered, GET misses, and a full list is clean.
std::optional<Action> clear_away(const Observation& seen, const std::string& spared) {
  const Memory& memory = seen.memory;
  const std::set<std::string> ids = ids_of(seen, spared);
  base::Moment last_kill = {};
  for (const auto& id : ids) {
    if (!looked_at(memory, id)) return unless_held(seen, Look{id});
    if (wants_kill(memory, id)) return kill_again(seen, id);
    last_kill = std::max(last_kill, memory.killed.at(id));
  }
  if (auto look = list_after(seen, ids, last_kill, spared)) return look;
  for (const auto& id : ids) {
    const auto got = memory.got.find(id);
    if (got == memory.got.end() || got->second.started < memory.killed.at(id))
      return unless_held(seen, Look{id});
    if (!got->second.info) continue;
    if (seen.now >= got->second.started + kLookAgain) return unless_held(seen, Look{id});
    return wait(api::reason::kDeleting, id + " is still there; looking again",
                got->second.started + kLookAgain - seen.now);
  }
  return std::nullopt;
}

// The sandbox stays with the provider, as the policy says; whatever else carries this UID does not.
Action release(const Observation& seen) {
  const std::string& id = seen.wanted.status.sandbox_id;
  const auto* found = std::get_if<Found>(&seen.actual);
  if (!found || found->info.state == e2b::State::kOther) return look_for_bound(seen);
  const api::DeletionPolicy policy = seen.wanted.spec.deletion_policy;
  if (seen.memory.released != id) return unless_held(seen, Release{id, policy});
  const bool running = found->info.state == e2b::State::kRunning;
  if (policy == api::DeletionPolicy::kPause && running) return unless_held(seen, Pause{id});
  if (policy == api::DeletionPolicy::kLeave && running && seen.memory.left != id)
    return unless_held(seen, Leave{id});
  if (auto next = clear_away(seen, id)) return *next;
  return RemoveFinalizer{};
}

}  // namespace

api::EndedBy due_ending(const Observation& seen) {
  const api::Sandbox& wanted = seen.wanted;
  if (wanted.spec.desired_state == api::DesiredState::kTerminated) return api::EndedBy::kUser;
  const auto& lifecycle = wanted.spec.lifecycle;
  if (lifecycle.shutdown_time && *lifecycle.shutdown_time <= seen.wall)
    return api::EndedBy::kShutdownTime;
  if (lifecycle.max_lifetime && wanted.metadata.created &&
      *wanted.metadata.created + *lifecycle.max_lifetime <= seen.wall)
    return api::EndedBy::kMaxLifetime;
  return api::EndedBy::kNobody;
}

std::optional<base::WallTime> next_ending(const api::Sandbox& wanted) {
  std::optional<base::WallTime> next = wanted.spec.lifecycle.shutdown_time;
  if (wanted.spec.lifecycle.max_lifetime && wanted.metadata.created) {
    const auto end = *wanted.metadata.created + *wanted.spec.lifecycle.max_lifetime;
    next = next ? std::min(*next, end) : end;
  }
  return next;
}

Action end_for_good(const Observation& seen) {
  const api::SandboxStatus& status = seen.wanted.status;
  if (status.ended_by == api::EndedBy::kNobody) return RecordEnding{due_ending(seen)};
  if (!status.terminated_time) {
    if (auto step = end_idle(seen)) return *step;
    if (auto next = clear_away(seen, "")) return *next;
    return RecordTerminated{};
  }
  const auto& ttl = seen.wanted.spec.lifecycle.ttl_after_terminated;
  if (!ttl) return Keep{};
  const base::WallTime due = *status.terminated_time + *ttl;
  if (seen.wall < due) return Keep{due};
  return DeleteObject{};
}

Action say_goodbye(const Observation& seen) {
  if (!has_finalizer(seen.wanted)) return Keep{};
  if (seen.wanted.status.terminated_time) return RemoveFinalizer{};
  const bool gone = std::holds_alternative<ProvenAbsent>(seen.actual) ||
                    std::holds_alternative<Foreign>(seen.actual);
  const bool ended = seen.wanted.status.ended_by != api::EndedBy::kNobody ||
                     seen.wanted.spec.desired_state == api::DesiredState::kTerminated;
  const bool kept = seen.wanted.spec.deletion_policy != api::DeletionPolicy::kKill && !ended &&
                    !seen.wanted.status.sandbox_id.empty() && !gone;
  if (kept) return release(seen);
  if (auto next = clear_away(seen, "")) return *next;
  return RemoveFinalizer{};
}

}  // namespace controller
