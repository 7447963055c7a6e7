#include "controller/reconcile/reconciler.h"

#include <algorithm>
#include <random>

#include "controller/reconcile/idle.h"
#include "controller/reconcile/pass.h"
#include "libs/api/reasons.h"
#include "libs/base/log.h"

namespace controller {
namespace {

// The newer of our own look and the provider's last poll.
void take_poll(Memory& memory, const Session& session, const std::string& uid) {
  if (!session.polled || session.polled->started <= memory.changed) return;
  if (memory.listed && memory.listed->started >= session.polled->started) return;
  const auto sandboxes = session.polled->of(uid);
  memory.listed = Listed{session.polled->started, {sandboxes.begin(), sandboxes.end()}};
  note_shown(memory, *memory.listed);
}

std::function<double()> any_chance() {
  return [random = std::minstd_rand(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<>(0, 1)(random);
  };
}

void forget_open_step(Memory& memory) {
  if (!memory.held.open) return;
  if (memory.held.step == "Pause") memory.quiesced = false;
  memory.held = {};
}

}  // namespace

Reconciler::Reconciler(Parts parts, RoundsOptions rounds)
    : parts_(parts), way_in_(parts.store), rounds_(rounds, parts.clock.now(), any_chance()) {}

kube::Requeue Reconciler::reconcile(const api::Key& key) {
  const auto wanted = parts_.store.find_sandbox(key);
  if (!wanted) return {};  // Deleted since it was queued.
  const auto is_ours = [&] { return parts_.mandate.may_act(wanted->spec.provider); };
  if (!is_ours()) return {};  // Whoever gets the mandate looks at everything.

  const Pass pass = observe(*wanted);
  const Action action = decide(pass.seen);
  tend_lease(pass, action);
  const Outcome outcome = act(pass, action);
  if (!is_ours()) return {};  // What came of it, the next holder sees.
  remember(pass, action, outcome);
  return publish(pass, action, outcome);  // Status, event; then when to look again.
}

Reconciler::Pass Reconciler::observe(const api::Sandbox& wanted) {
  Pass pass{.seen = {.wanted = wanted}};
  Observation& seen = pass.seen;
  seen.now = parts_.clock.now();
  seen.wall = parts_.clock.wall();
  seen.began = parts_.mandate.since(wanted.spec.provider);
  seen.operation = parts_.operations.running(wanted.metadata.uid);
  seen.memory = parts_.memories.recall(wanted.metadata.uid);
  if (auto session = parts_.providers.session(wanted.spec.provider)) {
    take_poll(seen.memory, *session, wanted.metadata.uid);
    seen.provider = *session->provider;
    seen.no_room = session->gate->no_room();
    pass.session = *std::move(session);
  } else {
    seen.provider_problem = session.error();
    seen.provider_reason = session.error().reason;
  }
  seen.actual = actual_of(seen);
  if (came_true(seen)) {
    forget_open_step(seen.memory);
    parts_.memories.update(wanted.metadata.uid, forget_open_step);
  }
  return pass;
}

// One overload per action, so a new action does not compile until it can be performed.
Outcome Reconciler::act(const Pass& pass, const Action& action) {
  return std::visit([&](const auto& step) { return perform(pass, step); }, action);
}

// A running sandbox that nobody wants gone keeps its lease, whatever else is in the way.
void Reconciler::tend_lease(const Pass& pass, const Action& action) {
  const auto* found = std::get_if<Found>(&pass.seen.actual);
  const api::Sandbox& wanted = pass.wanted();
  const bool ending = wanted.deleting() || wanted.status.ended_by != api::EndedBy::kNobody;
  if (std::holds_alternative<Unknown>(pass.seen.actual) && !ending) return;
  const bool running = found && found->info.state == e2b::State::kRunning;
  if (ending || !running || wanted.status.sandbox_id.empty() || !pass.session ||
      std::holds_alternative<RemoveFinalizer>(action))
    return parts_.heartbeats.drop(pass.uid());
  Heartbeats::Beat beat{.uid = pass.uid(),
                        .id = found->info.id,
                        .timeout = wanted.spec.keep_alive.timeout,
                        .interval = wanted.spec.keep_alive.heartbeat,
                        .gate = pass.session->gate};
  const auto& polled = pass.session->polled;
  if (found->info.end_at && polled && polled->provider_time)
    beat.left = *found->info.end_at - *polled->provider_time - (pass.seen.now - polled->started);
  parts_.heartbeats.keep(beat);
}

void Reconciler::remember(const Pass& pass, const Action& action, const Outcome& outcome) {
  parts_.observer.acted(action, outcome);
  if (outcome.error) {
    // A write that lost a race is decided anew at once.
    const bool raced = outcome.error->code == base::ErrorCode::kConflict && !mutates(action);
    if (!raced) hold_back(pass.wanted(), name_of(action), *outcome.error);
    return;
  }
  const bool settled = std::holds_alternative<Keep>(action) || (mutates(action) && !outcome.begun);
  if (settled && pass.seen.memory.held.failures > 0)
    parts_.memories.update(pass.uid(), [](Memory& memory) { memory.held = {}; });
}

kube::Requeue Reconciler::publish(const Pass& pass, const Action& action, const Outcome& outcome) {
  const api::Sandbox& wanted = pass.wanted();
  const Report news = report(pass.seen, action, outcome);
  base::log::debug("reconciled", {{"sandbox", api::to_text(wanted.metadata.key)},
                                  {"action", name_of(action)},
                                  {"state", news.status.state},
                                  {"error", outcome.error ? outcome.error->message : ""}});
  if (news.event) parts_.store.record_event(wanted, *news.event);
  tell_slow_step(pass);
  if (!news.write || news.status == wanted.status) return news.requeue;
  const auto saved = parts_.store.update_status(
      wanted.metadata.key, {wanted.metadata.uid, wanted.metadata.resource_version}, news.status,
      news.durability);
  // Nothing was recorded, so nothing that builds on it was done: the next pass decides anew.
  if (!saved) {
    const bool raced = saved.error().code == base::ErrorCode::kConflict;
    (raced ? base::log::debug : base::log::warn)(
        "a status was not written",
        {{"sandbox", api::to_text(wanted.metadata.key)}, {"error", saved.error()}});
    return {.failed = true};
  }
  recorded(pass, action);
  return news.requeue;
}

// To the log, once for each such step, as the event does.
void Reconciler::tell_slow_step(const Pass& pass) {
  const auto slow = slow_step(pass.seen);
  if (!slow || slow->told) return;
  base::log::warn("a step is slow", {{"sandbox", api::to_text(pass.wanted().metadata.key)},
                                     {"operation", *pass.seen.operation},
                                     {"step", slow->step},
                                     {"for_ms", (pass.seen.now - slow->since).count()}});
  parts_.memories.update(pass.uid(), [&](Memory& memory) {
    if (memory.progress && memory.progress->since == slow->since) memory.progress->told = true;
  });
}

// What only a status on record may make us remember.
void Reconciler::recorded(const Pass& pass, const Action& action) {
  const api::Sandbox& wanted = pass.wanted();
  if (std::holds_alternative<RecordRun>(action) && wanted.status.run == 0 &&
      wanted.metadata.created)
    parts_.observer.became_ready(pass.seen.wall - *wanted.metadata.created);
  if (std::holds_alternative<RecordRun>(action) && wanted.status.paused_by == api::PausedBy::kIdle)
    parts_.observer.woke();
  const auto* pause = std::get_if<RecordPausedBy>(&action);
  if (pause && pause->by == api::PausedBy::kIdle) parts_.observer.paused_for_idleness();
  if (pause || std::holds_alternative<RecordEnding>(action))
    parts_.memories.update(pass.uid(), [](Memory& memory) { memory.idle = afresh(memory.idle); });
  if (const auto* wait = std::get_if<Wait>(&action); wait && wait->reason == api::reason::kLost) {
    const auto* before = api::find_condition(wanted.status, api::condition::kReady);
    if (!before || before->reason != api::reason::kLost) parts_.observer.drifted("lost");
  }
  if (!std::holds_alternative<RecordIncarnation>(action)) return;
  const ExecutorView& view = pass.seen.memory.executor;
  parts_.memories.update(pass.uid(), [&](Memory& memory) {
    memory.judged = key_of_run(view.health.instance, view.started_at);
    if (view.kind == ExecutorView::Kind::kRefuses) memory.refusal_counted = true;
  });
}

}  // namespace controller
