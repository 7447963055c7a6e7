#include "controller/reconcile/idle.h"
#include "controller/reconcile/pass.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/log.h"
#include "libs/base/time.h"

namespace controller {
namespace {

constexpr base::Milliseconds kLongHold{120'000};  // From here on people are told its end.
constexpr base::Seconds kLeaveLease{3'600};       // The most that one refresh may ask for.

template <typename Result>
Outcome outcome_of(const Result& result) {
  return result ? Outcome{} : failed(result.error());
}

void note_get(Memory& memory, const std::string& id, base::Moment started,
              std::optional<Sighting> info) {
  Got& got = memory.got[id];
  if (info) {
    got.misses = 0;
    memory.shown.insert(id);
  } else if (got.misses++ == 0) {
    got.first_miss = started;
  }
  got.started = started;
  got.info = std::move(info);
}

// Why there is no create to send: what its environment is taken from cannot be read.
std::string reason_of_env(const base::Error& error, std::string otherwise) {
  if (error.code == base::ErrorCode::kNotFound) return std::string(api::reason::kSecretNotFound);
  if (error.code == base::ErrorCode::kDenied) return std::string(api::reason::kSecretForbidden);
  return otherwise;
}

// Counts a worker that waits for a provider.
struct Asking {
  explicit Asking(std::atomic<std::size_t>& count) : count(count), before(count++) {}
  ~Asking() { --count; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  std::atomic<std::size_t>& count;
  const std::size_t before;
};

}  // namespace

void Reconciler::hold_back(const api::Sandbox& wanted, std::string_view step,
                           const base::Error& error, std::optional<e2b::CreateFailure::Kind> kind) {
  parts_.memories.update(wanted.metadata.uid, [&](Memory& memory) {
    const Patience patience = patience_for(error, kind, memory.held.failures);
    HeldBack& held = memory.held = held_back(memory.held, wanted, step, error, patience);
    held.open = kind == e2b::CreateFailure::Kind::kAmbiguous;
    if (error.retry_after.value_or(base::Milliseconds(0)) >= kLongHold)
      held.why.message += "; held until " + base::to_rfc3339(parts_.clock.wall() + patience.delay);
    if (step == "Prepare" || step == "Resumed")
      held.reason =
          std::string(error.code == base::ErrorCode::kDenied ? api::reason::kExecutorNotOurs
                                                             : api::reason::kExecutorNotAnswering);
    if (step == "Create" && !kind) held.reason = reason_of_env(error, held.reason);
  });
  base::log::warn(
      "a step failed",
      {{"sandbox", api::to_text(wanted.metadata.key)}, {"step", step}, {"error", error}});
}

// The provider says that it is done. Unless a look shows that, it was a try in vain.
void Reconciler::await_effect(const api::Sandbox& wanted, std::string_view step,
                              std::string otherwise) {
  const base::Error why{base::ErrorCode::kUnavailable, std::move(otherwise)};
  parts_.memories.update(wanted.metadata.uid, [&](Memory& memory) {
    const Patience patience = patience_for(why, {}, memory.held.failures);
    memory.held = held_back(memory.held, wanted, step, why, patience);
    memory.held.reason = std::string(api::reason::kNoEffect);
    memory.held.open = true;
  });
}

HeldBack Reconciler::held_back(const HeldBack& before, const api::Sandbox& wanted,
                               std::string_view step, const base::Error& why,
                               const Patience& patience) const {
  return {.failures = before.failures + 1,
          .step = std::string(step),
          .until = parts_.clock.now() + patience.delay,
          .reason = patience.reason,
          .why = why,
          .generation = wanted.metadata.generation,
          .deleting = wanted.deleting(),
          .request = api::request_to_look(wanted.metadata),
          .for_good = patience.for_good,
          .standstill = patience.standstill};
}

Outcome Reconciler::begin(const Pass& pass, std::string name, bool finishes,
                          std::function<void(std::stop_token)> work, Operation::Line line) {
  const bool begun = parts_.operations.start({.key = pass.wanted().metadata.key,
                                              .uid = pass.uid(),
                                              .name = std::move(name),
                                              .work = std::move(work),
                                              .finishes = finishes,
                                              .line = line});
  if (!begun)
    return failed({base::ErrorCode::kUnavailable, "the controller is stopping or too busy"});
  return Outcome{.begun = true};
}

// A short call is made on the spot, unless so many workers wait for a provider already that one
// that hangs would leave none for the others.
Outcome Reconciler::do_or_begin(const Pass& pass, const std::string& name,
                                const std::function<Outcome(std::stop_token)>& work) {
  {
    const Asking asking(asking_);
    if (asking.before < parts_.asking_max) return work({});
  }
  const auto later = [this, wanted = pass.wanted(), name, work](std::stop_token stop) {
    const Outcome outcome = work(stop);
    if (outcome.error) hold_back(wanted, name, *outcome.error);
  };
  return begin(pass, name, false, later, Operation::Line::kBounded);
}

// ---- Looks and records -----------------------------------------------------------------------

Outcome Reconciler::perform(const Pass& pass, const Look& step) {
  return do_or_begin(pass, "Look",
                     [this, pass, step](std::stop_token stop) { return look(pass, step, stop); });
}

Outcome Reconciler::look(const Pass& pass, const Look& step, std::stop_token stop) {
  const base::Moment started = parts_.clock.now();
  const auto priority = pass.wanted().deleting() ? Priority::kDelete : Priority::kCreate;
  if (!step.id.empty()) {
    auto answer = pass.cloud(priority).get(step.id, stop);
    if (!answer) return failed(answer.error());
    std::optional<Sighting> sighting;
    if (answer->value) sighting = sighting_of(*std::move(answer->value));
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      note_get(memory, step.id, started, std::move(sighting));
    });
    return {};
  }
  auto answer = pass.cloud(priority).list(
      {{{key::kFleet, parts_.store.fleet_id()}, {key::kUid, pass.uid()}}}, stop);
  if (!answer) return failed(answer.error());
  // Servers may ignore the filter: the items are checked against our own metadata.
  std::vector<Sighting> sandboxes;
  for (e2b::SandboxInfo& sandbox : answer->value)
    if (metadata_at(sandbox, key::kUid) == pass.uid() &&
        metadata_at(sandbox, key::kFleet) == parts_.store.fleet_id())
      sandboxes.push_back(sighting_of(std::move(sandbox)));
  parts_.memories.update(pass.uid(), [&](Memory& memory) {
    memory.listed = Listed{started, std::move(sandboxes)};
    note_shown(memory, *memory.listed);
  });
  return {};
}

Outcome Reconciler::write_metadata(const Pass& pass, const std::optional<api::Attempt>& attempt,
                                   bool finalizer) {
  const api::Metadata& metadata = pass.wanted().metadata;
  auto annotations = metadata.annotations;
  auto finalizers = metadata.finalizers;
  if (attempt) {
    annotations[std::string(api::kAttemptAnnotation)] = api::to_text(*attempt);
    annotations.erase(std::string(api::kRecoveredAnnotation));
  }
  std::erase(finalizers, std::string(api::kFinalizer));
  if (finalizer) finalizers.emplace_back(api::kFinalizer);
  auto written = parts_.store.update_metadata(
      metadata.key, {metadata.uid, metadata.resource_version}, annotations, finalizers);
  if (!written) return failed(written.error());
  return Outcome{.written = true};
}

Outcome Reconciler::perform(const Pass&, const RecordIncarnation&) { return {}; }
Outcome Reconciler::perform(const Pass&, const RecordRun&) { return {}; }
Outcome Reconciler::perform(const Pass&, const RecordPausedBy&) { return {}; }
Outcome Reconciler::perform(const Pass&, const RecordEnding&) { return {}; }
Outcome Reconciler::perform(const Pass&, const RecordTerminated&) { return {}; }
Outcome Reconciler::perform(const Pass&, const Keep&) { return {}; }
Outcome Reconciler::perform(const Pass&, const Wait&) { return {}; }

// ---- Extend, pause, resume, end --------------------------------------------------------------

Outcome Reconciler::perform(const Pass& pass, const Extend& step) {
  return do_or_begin(pass, "Extend", [this, pass, step](std::stop_token stop) {
    const auto extended = pass.cloud(Priority::kHeartbeat)
                              .extend(step.id, pass.wanted().spec.keep_alive.timeout, stop);
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      if (extended) memory.extended = step.id;
      // It may have been paused or have gone: what was seen before counts no more.
      if (!extended && extended.error().code == base::ErrorCode::kNotFound)
        outdate(memory, parts_.clock.now());
    });
    return outcome_of(extended);
  });
}

// The executor is asked to stand still when nothing is left to do but the call itself: a quiesce
// lapses, and what comes before, such as an extension or the line of others' calls, may last
// longer. With `if_idle_for` nothing is sent where something is active, or nobody can say.
Gate::Condition Reconciler::standing_still(const base::Result<Target>& where,
                                           std::optional<base::Seconds> if_idle_for,
                                           std::stop_token stop, Stillness& still) {
  return [this, &where, if_idle_for, stop, &still]() -> base::Result<base::Done> {
    const auto answer = [&]() -> base::Result<wire::Health> {
      if (!where) return where.error();
      if (!where->was_prepared)
        return base::error(base::ErrorCode::kNotFound, "its executor was never at work");
      wire::Quiesce how;
      if (if_idle_for) how.if_idle_for_ms = base::Milliseconds(*if_idle_for).count();
      return parts_.reach.quiesce(*where, how, stop);
    }();
    still.asked = true;
    still.quiesced = answer && answer->quiesced;
    still.active = answer && !answer->quiesced;
    if (!if_idle_for || still.quiesced) return base::Done{};
    if (!answer) return answer.error();
    return base::error(base::ErrorCode::kConflict, "something is active in it");
  };
}

Outcome Reconciler::perform(const Pass& pass, const Pause& step) {
  parts_.heartbeats.drop(pass.uid());
  return begin(pass, "Pause", true, [this, pass, step](std::stop_token stop) {
    // A refused pause must not end in a lease that runs out.
    (void)pass.cloud(Priority::kPause).extend(step.id, pass.wanted().spec.keep_alive.timeout, stop);
    const auto where = target(pass, step.id, Priority::kPause, stop);
    Stillness still;
    const auto paused = pass.session->gate->pause_if(
        standing_still(where, step.if_idle_for, stop, still), step.id, stop);
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      outdate(memory, parts_.clock.now());
      memory.quiesced = memory.executor.health.quiesced = still.quiesced;
      if (paused) memory.executor = {};
      if (!paused && !still.quiesced)
        memory.executor.ask_at = memory.changed;  // It did not hear us.
      memory.idle.busy = !paused && step.if_idle_for;
      if (still.quiesced || still.active) taken(memory.idle, IdleTrouble::Step::kLastQuiesce);
    });
    if (still.active) return;
    if (!paused && step.if_idle_for) return leave_awake(pass, still.in_the_way(), paused.error());
    if (!paused) return hold_back(pass.wanted(), "Pause", paused.error());
    await_effect(pass.wanted(), "Pause",
                 "the provider said that it had paused it, and it is still running");
  });
}

Outcome Reconciler::perform(const Pass& pass, const Connect& step) {
  const bool retried = pass.seen.memory.held.step == "Connect";
  if (pass.wanted().status.paused_by == api::PausedBy::kNobody && !retried)
    parts_.observer.drifted("paused");
  return begin(pass, "Connect", true, [this, pass, step](std::stop_token stop) {
    e2b::Cloud& cloud = pass.cloud(Priority::kResume);
    const auto connected = cloud.connect(step.id, pass.wanted().spec.keep_alive.timeout, stop);
    if (connected)
      way_in_.keep(name_of_provider(*pass.session), pass.wanted(), connected->handle, cloud, stop);
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      outdate(memory, parts_.clock.now());
      memory.executor = {};
      memory.idle = {};
      memory.told.clear();
      memory.judged.clear();
      memory.rolled_back = memory.rolled_back || step.rolled_back;
      if (connected) memory.handle = connected->handle;
    });
    if (!connected) return hold_back(pass.wanted(), "Connect", connected.error());
    await_effect(pass.wanted(), "Connect",
                 "the provider said that it had resumed it, and it is still paused");
  });
}

base::Result<e2b::KillAnswer> Reconciler::kill(const Pass& pass, const Kill& step, Stillness& still,
                                               std::stop_token stop) {
  if (!step.if_idle_for) return pass.cloud(Priority::kDelete).kill(step.id, stop);
  const auto where = target(pass, step.id, Priority::kDelete, stop);
  return pass.session->gate->kill_if(standing_still(where, step.if_idle_for, stop, still), step.id,
                                     stop);
}

Outcome Reconciler::perform(const Pass& pass, const Kill& step) {
  parts_.heartbeats.drop(pass.uid());
  const auto work = [this, pass, step](std::stop_token stop) {
    // While it stood in line the policy may have been edited: then the next pass decides.
    const auto now = parts_.store.find_sandbox(pass.wanted().metadata.key);
    if (!now || now->metadata.uid != pass.uid() ||
        now->metadata.generation != pass.wanted().metadata.generation)
      return;
    Stillness still;
    const auto killed = kill(pass, step, still, stop);
    // Something is active again, or nobody can say: then it goes on, if it is there.
    const bool goes_on = !killed && still.asked && !still.quiesced;
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.shown.merge(std::set(pass.seen.memory.shown));  // What the last poll showed, too.
      // Whatever was heard of a DELETE, it may have been done, now or the time before.
      outdate(memory, parts_.clock.now());
      if (goes_on) {
        memory.idle.busy = true;
        memory.executor.ask_at = memory.changed;
      }
      if (still.quiesced || still.active) taken(memory.idle, IdleTrouble::Step::kLastQuiesce);
      if (!killed) return;
      memory.killed[step.id] = memory.changed;
      memory.held = {};
    });
    if (still.active) return;
    if (goes_on) return leave_awake(pass, still.in_the_way(), killed.error());
    if (!killed) hold_back(pass.wanted(), "Kill", killed.error());
  };
  return begin(pass, "Kill", false, work, Operation::Line::kBounded);
}

Outcome Reconciler::perform(const Pass& pass, const Release& step) {
  const auto kept = parts_.store.add_release({.sandbox_id = step.id,
                                              .uid = pass.uid(),
                                              .provider = pass.wanted().spec.provider,
                                              .policy = std::string(api::to_word(step.policy)),
                                              .time = parts_.clock.wall()});
  if (kept) parts_.memories.update(pass.uid(), [&](Memory& memory) { memory.released = step.id; });
  return outcome_of(kept);
}

Outcome Reconciler::perform(const Pass& pass, const Leave& step) {
  return do_or_begin(pass, "Leave", [this, pass, step](std::stop_token stop) {
    parts_.heartbeats.drain(pass.uid());
    const auto extended = pass.cloud(Priority::kDelete).extend(step.id, kLeaveLease, stop);
    if (extended)
      parts_.memories.update(pass.uid(), [&](Memory& memory) { memory.left = step.id; });
    return outcome_of(extended);
  });
}

Outcome Reconciler::perform(const Pass& pass, const RemoveFinalizer&) {
  const Outcome outcome = write_metadata(pass, std::nullopt, false);
  if (!outcome.error) parts_.memories.forget(pass.uid());
  return outcome;
}

Outcome Reconciler::perform(const Pass& pass, const DeleteObject&) {
  return outcome_of(parts_.store.delete_sandbox(pass.wanted().metadata.key, pass.uid()));
}

}  // namespace controller
