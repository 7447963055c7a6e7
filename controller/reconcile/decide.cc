#include "controller/reconcile/decide.h"

#include <algorithm>

#include "controller/reconcile/binding.h"
#include "controller/reconcile/ending.h"
#include "controller/reconcile/identity.h"
#include "controller/reconcile/idle.h"
#include "controller/reconcile/looks.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

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
