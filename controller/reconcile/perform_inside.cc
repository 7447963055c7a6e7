#include "controller/reconcile/idle.h"
#include "controller/reconcile/pass.h"
#include "libs/api/annotations.h"
#include "libs/base/log.h"

// What the Reconciler does inside a sandbox: the executor is brought to life, asked, and told.
namespace controller {
namespace {

ExecutorView prepared(const Prepare& step, const base::Result<wire::Health>& health,
                      base::Moment ask_at, const std::string& request) {
  ExecutorView view{.kind = ExecutorView::Kind::kAnswering,
                    .sandbox_id = step.id,
                    .started_at = step.started_at,
                    .ask_at = ask_at,
                    .request = request};
  if (health)
    view.health = *health;
  else if (health.error().code == base::ErrorCode::kDenied)
    view.kind = ExecutorView::Kind::kRefuses;
  else
    view.kind = ExecutorView::Kind::kSilent;
  return view;
}

// A refusal of the provider is none of the executor's.
base::Error not_reached(base::Error error) {
  if (error.code != base::ErrorCode::kCancelled) error.code = base::ErrorCode::kUnavailable;
  return error;
}

// It did not answer: it may have been paused or have gone, or its tokens have changed.
void forget_way_in(Memory& memory, base::Moment now) {
  outdate(memory, now);
  memory.handle.reset();
}

}  // namespace

base::Result<Target> Reconciler::target(const Pass& pass, const std::string& id, Priority priority,
                                        std::stop_token stop) {
  const Memory known = parts_.memories.recall(pass.uid());
  std::optional<e2b::Handle> handle = known.handle;
  if (!handle || handle->id != id) {
    // A way in that did not lead in may have been an old one.
    const bool anew = known.held.step == "Prepare" || known.held.step == "Resumed";
    auto found = way_in_.find(name_of_provider(*pass.session), pass.wanted(), id, anew,
                              pass.cloud(priority), stop);
    if (!found) return not_reached(found.error());
    handle = *std::move(found);
    parts_.memories.update(pass.uid(), [&](Memory& memory) { memory.handle = handle; });
  }
  const api::SandboxStatus& status = pass.wanted().status;
  return Target{pass.session->provider->spec, *handle,       pass.uid(), status.epoch,
                pass.wanted().spec.provider,  status.run > 0};
}

Outcome Reconciler::perform(const Pass& pass, const Prepare& step) {
  if (pass.seen.memory.executor.kind == ExecutorView::Kind::kGone)
    parts_.observer.drifted("executor");
  const auto work = [this, pass, step](std::stop_token stop) {
    const auto on_step = [&](std::string_view name) {
      parts_.memories.update(pass.uid(), [&](Memory& memory) {
        memory.progress = Progress{.step = std::string(name), .since = parts_.clock.now()};
      });
    };
    const auto health = [&]() -> base::Result<wire::Health> {
      on_step("asking the provider for the way in");
      TRY(const Target where, target(pass, step.id, Priority::kResume, stop));
      return parts_.reach.prepare(where, step.replace, on_step, stop);
    }();
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.progress.reset();
      note_executor(memory, prepared(step, health, rounds_.next(parts_.clock.now()),
                                     api::request_to_look(pass.wanted().metadata)));
      if (health) memory.refusal_counted = false;
      if (!health) forget_way_in(memory, parts_.clock.now());
    });
    // The first refusal is answered at once, by a replacement; one that is refused too waits.
    if (!health && (step.replace || health.error().code != base::ErrorCode::kDenied))
      hold_back(pass.wanted(), "Prepare", health.error());
  };
  return begin(pass, "Prepare", false, work,
               is_ready_unheard(pass.seen) ? Operation::Line::kPatient : Operation::Line::kCommon);
}

// Whoever gets no turn, or finds no thread free, comes again: nothing is wrong with the sandbox.
Outcome Reconciler::begin_in_turn(const Pass& pass, std::string name,
                                  std::function<void(std::stop_token)> work,
                                  const std::function<void(Memory&, base::Moment)>& put_off) {
  if (const auto turn = rounds_.take_turn(parts_.clock.now())) {
    const auto in_turn = [turn, work = std::move(work)](std::stop_token stop) { work(stop); };
    if (begin(pass, std::move(name), false, in_turn, Operation::Line::kPatient).begun)
      return {.begun = true};
  }
  parts_.memories.update(
      pass.uid(), [&](Memory& memory) { put_off(memory, rounds_.put_off(parts_.clock.now())); });
  return {};
}

Outcome Reconciler::perform(const Pass& pass, const AskExecutor& step) {
  const std::string request = api::request_to_look(pass.wanted().metadata);
  const auto ask = [this, pass, step, request](std::stop_token stop) {
    const auto answer = [&]() -> base::Result<wire::Health> {
      TRY(const Target where, target(pass, step.id, Priority::kPoll, stop));
      return parts_.reach.health(where, stop);
    }();
    const base::Moment now = parts_.clock.now();
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      note_executor(memory, heard(memory.executor, answer, now, rounds_.next(now)));
      memory.executor.request = request;
      if (!answer && answer.error().code == base::ErrorCode::kConflict) memory.handle.reset();
    });
  };
  return begin_in_turn(pass, "AskExecutor", ask, [&](Memory& memory, base::Moment again) {
    memory.executor.ask_at = again;
    memory.executor.request = request;
  });
}

// What an executor that does not answer has come to is for AskExecutor to find out, at once.
Outcome Reconciler::perform(const Pass& pass, const AskActivity& step) {
  const auto ask = [this, pass, step](std::stop_token stop) {
    const auto answer = [&]() -> base::Result<wire::Activity> {
      TRY(const Target where, target(pass, step.id, Priority::kPoll, stop));
      return parts_.reach.activity(where, stop);
    }();
    const base::Moment now = parts_.clock.now();
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.idle = heard(memory.idle, answer, step.idle, now);
      if (!answer) memory.executor.ask_at = now;
    });
    if (!answer) leave_awake(pass, IdleTrouble::Step::kAskActivity, answer.error());
  };
  return begin_in_turn(pass, "AskActivity", ask,
                       [](Memory& memory, base::Moment again) { memory.idle.ask_at = again; });
}

// It is to be put to rest where it idles, and that was refused, or not answered: it goes on, and is
// tried again by and by.
void Reconciler::leave_awake(const Pass& pass, IdleTrouble::Step step, const base::Error& why) {
  if (why.code == base::ErrorCode::kCancelled) return;
  bool is_news = false;
  parts_.memories.update(pass.uid(), [&](Memory& memory) {
    const bool was_told = is_told(memory.idle.trouble);
    IdleTrouble trouble = again(memory.idle.trouble, step, why.message, pass.wanted());
    trouble.until = rounds_.again(parts_.clock.now(), trouble.failures);
    memory.idle.trouble = std::move(trouble);
    is_news = !was_told && is_told(memory.idle.trouble);
  });
  if (is_news)
    base::log::warn("a sandbox is not put to rest, and tried again less and less often",
                    {{"sandbox", api::to_text(pass.wanted().metadata.key)}, {"error", why}});
}

// Refused or not answered: the sandbox goes on, and is asked again by and by. Where only the answer
// was lost, AskExecutor finds that it stands still.
Outcome Reconciler::perform(const Pass& pass, const QuiesceIdle& step) {
  const auto quiesce = [this, pass, step](std::stop_token stop) {
    const base::Moment asked = parts_.clock.now();
    const auto answer = [&]() -> base::Result<wire::Health> {
      TRY(const Target where, target(pass, step.id, Priority::kPause, stop));
      return parts_.reach.quiesce(where, {.if_idle_for_ms = base::Milliseconds(step.idle).count()},
                                  stop);
    }();
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.idle = afresh(memory.idle, parts_.clock.now() + kIdleLookMin);
      if (!answer) {
        memory.executor.ask_at = parts_.clock.now();
        return;
      }
      taken(memory.idle, IdleTrouble::Step::kQuiesce);
      memory.executor.health = *answer;
      if (!answer->quiesced) return;
      memory.idle.record_by = asked + kIdleRecordWithin;
      memory.idle.wake_seen = step.wake_seen;
    });
    if (!answer) leave_awake(pass, IdleTrouble::Step::kQuiesce, answer.error());
  };
  return begin_in_turn(pass, "QuiesceIdle", quiesce, [](Memory& memory, base::Moment again) {
    memory.idle = afresh(memory.idle, again);
  });
}

Outcome Reconciler::perform(const Pass& pass, const Resumed& step) {
  return begin(pass, "Resumed", false, [this, pass, step](std::stop_token stop) {
    const auto health = [&]() -> base::Result<wire::Health> {
      TRY(const Target where, target(pass, step.id, Priority::kResume, stop));
      return parts_.reach.resumed(
          where, {step.identity, parts_.clock.wall().time_since_epoch().count(), step.news}, stop);
    }();
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.quiesced = false;  // It lapses by itself, too.
      memory.idle = afresh(memory.idle);
      if (health) {
        memory.executor.health = *health;
        memory.executor.ask_at = rounds_.next(parts_.clock.now());
        memory.told = key_of_run(health->instance, memory.executor.started_at);
        memory.rolled_back = false;
      } else {
        memory.executor = {};
        forget_way_in(memory, parts_.clock.now());
      }
    });
    if (!health) hold_back(pass.wanted(), "Resumed", health.error());
  });
}

}  // namespace controller
