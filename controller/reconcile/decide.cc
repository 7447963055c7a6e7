#include "controller/reconcile/decide.h"

#include <algorithm>
#include <set>

#include "controller/reconcile/identity.h"
#include "controller/reconcile/idle.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

constexpr base::Milliseconds kLookAgain{2'000};  // Between looks for what is expected to change.

bool has_finalizer(const api::Sandbox& wanted) {
  return std::ranges::find(wanted.metadata.finalizers, api::kFinalizer) !=
         wanted.metadata.finalizers.end();
}

Wait wait(std::string_view reason, std::string why, base::Milliseconds again = kLookAgain) {
  return Wait{std::string(reason), std::move(why), again};
}

Wait stalled(std::string_view reason, std::string why) {
  return {std::string(reason), std::move(why), base::Milliseconds(0), true};
}

// A step that may fail again waits out its delay first, unless the resource has changed since.
Action unless_held(const Observation& seen, Action action) {
  const HeldBack& held = seen.memory.held;
  const bool asked_since = held.request != api::request_to_look(seen.wanted.metadata);
  if (!is_held_as_wanted(seen) || asked_since) return action;
  if (held.open && held.step != name_of(action)) return action;
  // After another step's failure a look is what tells how things stand.
  if (std::holds_alternative<Look>(action) && held.step != "Look") return action;
  if (held.for_good) return stalled(held.reason, held.why.message);
  if (seen.now >= held.until) return action;
  Wait waiting = wait(held.reason, held.why.message, held.until - seen.now);
  waiting.stalled = held.standstill;
  return waiting;
}

Action look_list(const Observation& seen, std::string_view reason, const std::string& why) {
  const auto& listed = seen.memory.listed;
  if (listed && seen.now < listed->started + kLookAgain)
    return wait(reason, why, listed->started + kLookAgain - seen.now);
  return unless_held(seen, Look{});
}

// GET, then a full list, then GET again: what the proof of absence needs next.
Action look_for_bound(const Observation& seen) {
  const Memory& memory = seen.memory;
  const std::string& id = seen.wanted.status.sandbox_id;
  const auto entry = memory.got.find(id);
  if (entry == memory.got.end() || entry->second.started < memory.changed)
    return unless_held(seen, Look{id});
  const Got& got = entry->second;
  const bool missed = !got.info && got.first_miss >= memory.changed;
  if (missed && (!memory.listed || memory.listed->started < got.first_miss))
    return unless_held(seen, Look{});
  const bool list_is_newer = memory.listed && memory.listed->started > got.started;
  if (seen.now < got.started + kLookAgain && !(got.info && list_is_newer))
    return wait(api::reason::kUnknown, "a look was not conclusive; looking again to be certain",
                got.started + kLookAgain - seen.now);
  return unless_held(seen, Look{id});
}

// A provider that is full is asked by few, and woken for (controller/gate/room.h): until then no
// create is sent, and none is meant.
Action when_there_is_room(const Observation& seen, Action action) {
  if (!seen.no_room || std::holds_alternative<Wait>(action)) return action;
  return wait(api::reason::kProviderQuotaExceeded, seen.no_room->message,
              seen.no_room->retry_after.value_or(kLookAgain));
}

Action create(const Observation& seen, const api::Attempt& attempt) {
  return when_there_is_room(seen, unless_held(seen, Create{attempt}));
}

// ---- Before it is bound ----------------------------------------------------------------------

Action adopt_or_begin(const Observation& seen) {
  if (!seen.memory.listed || seen.memory.listed->started < seen.began)
    return look_list(seen, api::reason::kPending, "waiting for a complete list of the provider");
  const auto& sandboxes = seen.memory.listed->sandboxes;
  if (sandboxes.empty() && !settled(seen))
    return look_list(seen, api::reason::kResolvingCreate,
                     "the record of earlier creates was lost; none is sent before it is certain "
                     "that they made nothing");
  if (sandboxes.empty()) return when_there_is_room(seen, RecordIntent{});
  // The record of it was lost: the newest epoch is the one that was ours.
  const auto newest = std::ranges::max_element(sandboxes, {}, &Sighting::epoch);
  return RecordIntent{.adopted = api::Attempt{.nonce = newest->nonce,
                                              .epoch = std::max<std::int64_t>(1, newest->epoch)}};
}

Action resolve_create(const Observation& seen, const api::Attempt& attempt) {
  if (settled(seen)) {
    // The next one is meant when it may be sent.
    const Action next = create(seen, attempt);
    return std::holds_alternative<Wait>(next) ? next : RecordIntent{.epoch = attempt.epoch};
  }
  const auto& sent = seen.memory.sent;
  const std::string why = sent && sent->failure
                              ? "nobody knows what came of a create: " + sent->failure->message
                              : "a create was not answered";
  return look_list(seen, api::reason::kResolvingCreate,
                   why + "; no other is sent before it is certain that it made nothing");
}

Action create_again(const Observation& seen, const api::Attempt& attempt) {
  const Sent& sent = *seen.memory.sent;
  if (!sent.failure->definite()) return resolve_create(seen, attempt);
  const bool answered = sent.failure->kind != e2b::CreateFailure::Kind::kNotSent;
  if (answered && sent.attempt.number == attempt.number)
    return CountRefusal{{attempt.nonce, attempt.epoch, attempt.number + 1}};
  return create(seen, attempt);
}

Action bring_to_life(const Observation& seen) {
  const auto attempt = api::attempt_of(seen.wanted.metadata);
  if (!attempt) return adopt_or_begin(seen);
  if (!has_finalizer(seen.wanted)) return RecordIntent{.adopted = attempt};
  const Memory& memory = seen.memory;
  const bool sent = memory.sent && memory.sent->attempt.nonce == attempt->nonce;
  if (sent && !memory.sent->id.empty()) return unless_held(seen, Bind{memory.sent->id, *attempt});
  if (const auto* found = std::get_if<Found>(&seen.actual))
    return unless_held(seen, Bind{found->info.id, *attempt});
  if (memory.listed)
    for (const auto& sandbox : memory.listed->sandboxes)
      if (sandbox.epoch > attempt->epoch)
        return RecordIntent{.adopted =
                                api::Attempt{.nonce = sandbox.nonce, .epoch = sandbox.epoch}};
  if (sent) return create_again(seen, *attempt);
  if (memory.recorded_nonce == attempt->nonce && memory.listed) return create(seen, *attempt);
  return resolve_create(seen, *attempt);
}

// ---- While it lives --------------------------------------------------------------------------

const ExecutorView* executor_of(const Observation& seen, const Sighting& info) {
  const ExecutorView& view = seen.memory.executor;
  const bool current = view.kind != ExecutorView::Kind::kUnknown && view.sandbox_id == info.id &&
                       view.started_at == info.started_at;
  return current ? &view : nullptr;
}

bool is_due(const Observation& seen, const ExecutorView& view) {
  return seen.now >= view.ask_at || view.request != api::request_to_look(seen.wanted.metadata);
}

wire::Identity identity_of(const api::Sandbox& wanted, std::int64_t run) {
  return {wanted.metadata.uid, wanted.status.epoch, wanted.status.incarnation, run};
}

// The executor answers; its marker and the status on record are brought together.
Action settle_identity(const Observation& seen, const Sighting& info, const wire::Health& health) {
  const api::SandboxStatus& status = seen.wanted.status;
  const bool new_run = status.run == 0 || status.start_time != info.started_at;
  const std::string run_key = key_of_run(health.instance, info.started_at);
  if (new_run && seen.memory.told == run_key && !health.quiesced)
    return RecordRun{health.identity.run, info.started_at};

  const Judgement judged = judge(seen.wanted, health.identity, new_run, seen.memory.rolled_back);
  if (judged.incarnation != status.incarnation && seen.memory.judged != run_key)
    return RecordIncarnation{judged.incarnation, judged.news ? judged.news->message : ""};
  const wire::Identity identity = identity_of(seen.wanted, judged.run);
  if (health.identity != identity || health.quiesced)
    return unless_held(seen, Resumed{info.id, identity, judged.news});
  if (status.run != identity.run) return RecordRun{identity.run, info.started_at};
  if (status.paused_by != api::PausedBy::kNobody) return RecordPausedBy{};
  return Keep{};
}

Action keep_running(const Observation& seen, const Sighting& info) {
  const Memory& memory = seen.memory;
  if (memory.bound_here && memory.extended != info.id) return unless_held(seen, Extend{info.id});
  const ExecutorView* view = executor_of(seen, info);
  if (!view || view->kind == ExecutorView::Kind::kSilent || view->kind == ExecutorView::Kind::kGone)
    return unless_held(seen, Prepare{info.id, info.started_at});
  if (view->kind == ExecutorView::Kind::kAnswering) {
    if (auto step = record_idle(seen)) return *step;
    Action action = settle_identity(seen, info, view->health);
    auto* keep = std::get_if<Keep>(&action);
    if (!keep) return action;
    if (is_due(seen, *view)) return AskExecutor{info.id, info.started_at};
    if (auto step = look_whether_idle(seen, info.id)) return *step;
    keep->ask_at = std::min(view->ask_at, next_look_whether_idle(seen));
    return action;
  }
  if (!memory.refusal_counted && seen.wanted.status.run > 0)
    return RecordIncarnation{seen.wanted.status.incarnation + 1,
                             "the executor refused its controller or was an impostor, and was "
                             "replaced: processes are no longer attached"};
  return unless_held(seen, Prepare{info.id, info.started_at, true});
}

Action pause_it(const Observation& seen, const Sighting& info, api::PausedBy by) {
  if (seen.wanted.status.paused_by != by) return RecordPausedBy{by};
  if (by == api::PausedBy::kIdle && seen.memory.idle.busy) return RecordPausedBy{};
  // A refused pause leaves the executor quiesced: it thaws first, with the same run.
  if (seen.memory.quiesced && seen.wanted.status.run > 0)
    return Resumed{info.id, identity_of(seen.wanted, seen.wanted.status.run)};
  Pause pause{info.id};
  if (by == api::PausedBy::kIdle) pause.if_idle_for = seen.wanted.spec.lifecycle.idle;
  return unless_held(seen, std::move(pause));
}

Action resume_it(const Observation& seen, const Sighting& info) {
  const auto& start = seen.wanted.status.start_time;
  return unless_held(seen, Connect{info.id, start && info.end_at && *info.end_at < *start});
}

Action tend(const Observation& seen, const Sighting& info) {
  if (info.state == e2b::State::kOther) return look_for_bound(seen);
  const bool running = info.state == e2b::State::kRunning;
  if (api::desired_now(seen.wanted) == api::DesiredState::kRunning)
    return running ? keep_running(seen, info) : resume_it(seen, info);
  const bool is_wished = seen.wanted.spec.desired_state == api::DesiredState::kPaused;
  const api::PausedBy by = is_wished ? api::PausedBy::kUser : api::PausedBy::kIdle;
  if (running) return pause_it(seen, info, by);
  if (seen.wanted.status.paused_by != by) return RecordPausedBy{by};
  return Keep{};
}

Action keep_alive(const Observation& seen) {
  if (seen.wanted.status.sandbox_id.empty()) return bring_to_life(seen);
  if (const auto* found = std::get_if<Found>(&seen.actual)) return tend(seen, found->info);
  const std::string bound = "the E2B sandbox " + seen.wanted.status.sandbox_id;
  if (std::holds_alternative<Foreign>(seen.actual))
    return stalled(api::reason::kNameConflict,
                   bound + " does not carry this Sandbox's UID; it is left alone");
  if (std::holds_alternative<ProvenAbsent>(seen.actual))
    return stalled(api::reason::kLost,
                   bound + " no longer exists; delete this Sandbox and make another");
  return look_for_bound(seen);
}

// ---- To its end ------------------------------------------------------------------------------

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
  if (found && (seen.memory.idle.busy || !wanted)) return RecordEnding{};
  return std::nullopt;
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

}  // namespace

Action decide(const Observation& seen) {
  if (seen.operation) return wait("", *seen.operation, until_slow(seen));
  const bool ended = seen.wanted.status.terminated_time.has_value();
  if (seen.provider_problem && has_finalizer(seen.wanted) && !ended)
    return wait(seen.provider_reason, seen.provider_problem->message, base::Milliseconds(30'000));
  if (seen.wanted.deleting()) return say_goodbye(seen);
  if (seen.provider_problem && !ended)
    return wait(seen.provider_reason, seen.provider_problem->message, base::Milliseconds(30'000));
  if (seen.wanted.status.ended_by != api::EndedBy::kNobody ||
      due_ending(seen) != api::EndedBy::kNobody)
    return end_for_good(seen);
  Action action = keep_alive(seen);
  if (auto* keep = std::get_if<Keep>(&action)) keep->until = next_ending(seen.wanted);
  return action;
}

std::string_view name_of(const Action& action) {
  static constexpr std::string_view kNames[] = {"Look",
                                                "RecordIntent",
                                                "CountRefusal",
                                                "Create",
                                                "Bind",
                                                "Extend",
                                                "Prepare",
                                                "AskExecutor",
                                                "AskActivity",
                                                "QuiesceIdle",
                                                "RecordIncarnation",
                                                "Resumed",
                                                "RecordRun",
                                                "RecordPausedBy",
                                                "Pause",
                                                "Connect",
                                                "Kill",
                                                "RecordEnding",
                                                "RecordTerminated",
                                                "Release",
                                                "Leave",
                                                "RemoveFinalizer",
                                                "DeleteObject",
                                                "Keep",
                                                "Wait"};
  static_assert(std::size(kNames) == std::variant_size_v<Action>);
  return kNames[action.index()];
}

bool mutates(const Action& action) {
  return std::visit(
      base::Overloaded{[](const Create&) { return true; }, [](const Extend&) { return true; },
                       [](const Prepare&) { return true; }, [](const Resumed&) { return true; },
                       [](const QuiesceIdle&) { return true; }, [](const Pause&) { return true; },
                       [](const Connect&) { return true; }, [](const Kill&) { return true; },
                       [](const Leave&) { return true; }, [](const auto&) { return false; }},
      action);
}

}  // namespace controller
