#include "controller/reconcile/report.h"

#include <algorithm>

#include "controller/reconcile/idle.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/strings.h"

namespace controller {
namespace {

namespace condition = api::condition;
namespace reason = api::reason;

// As the schema of the status has them.
constexpr std::size_t kVersionBytesMax = 64, kMessageBytesMax = 4'096;
constexpr base::Milliseconds kKeepLookMax = std::chrono::hours(1);

// The story of one pass: the printed word, how Ready stands, and why.
struct Story {
  std::string_view state;
  std::string_view ready = "False";
  std::string_view reason;
  std::string message = {};
  bool reconciling = true, stalled = false;
};

Story under_way(std::string_view state, std::string_view reason, std::string message) {
  return {.state = state, .reason = reason, .message = std::move(message)};
}

std::string_view reason_of(api::EndedBy by) {
  switch (by) {
    case api::EndedBy::kUser:
      return reason::kEndedByUser;
    case api::EndedBy::kShutdownTime:
      return reason::kShutdownTimeReached;
    case api::EndedBy::kMaxLifetime:
      return reason::kMaxLifetimeReached;
    case api::EndedBy::kIdle:
      return reason::kIdleTimeReached;
    case api::EndedBy::kNobody:
      break;
  }
  return reason::kTerminated;
}

std::string idle_seconds(const api::Sandbox& wanted) {
  return std::to_string(wanted.spec.lifecycle.idle.value_or(base::Seconds(0)).count()) + " s";
}

// With how it comes back.
std::string text_of_idle(const api::Sandbox& wanted) {
  const std::string what = "paused, since nothing was active in it for " + idle_seconds(wanted);
  return what + (wanted.spec.lifecycle.wake_on_attach
                     ? "; whoever attaches wakes it"
                     : "; 'sandfleet resume' wakes it, and wakeOnAttach would have it woken by "
                       "whoever attaches");
}

Story running(std::int64_t run) {
  return {"Running", "True", reason::kReady, "run " + std::to_string(run), false};
}

Story kept(const Observation& seen) {
  const api::SandboxStatus& status = seen.wanted.status;
  if (status.ended_by != api::EndedBy::kNobody)
    return {"Terminated", "False", reason_of(status.ended_by), "the sandbox was ended for good",
            false};
  if (seen.wanted.spec.desired_state == api::DesiredState::kPaused)
    return {"Paused", "False", reason::kPaused, "paused, as desiredState asks", false};
  if (api::stays_idle(seen.wanted))
    return {"Paused", "False", reason::kIdle, text_of_idle(seen.wanted), false};
  return running(status.run);
}

Story of_operation(const std::string& name) {
  if (name == "Create")
    return under_way("Creating", reason::kCreating, "the provider is creating it");
  if (name == "Pause") return under_way("Pausing", reason::kPausing, "the provider is pausing it");
  if (name == "Connect")
    return under_way("Resuming", reason::kResuming, "the provider is resuming it");
  if (name == "Kill")
    return under_way("Terminating", reason::kTerminating, "the provider is ending it");
  return under_way("Preparing", reason::kPreparing, "the executor is being started");
}

Story of_preparation(const Observation& seen) {
  if (seen.memory.executor.kind != ExecutorView::Kind::kGone) return of_operation("Prepare");
  return under_way("Preparing", reason::kExecutorGone,
                   "the executor no longer ran inside; it is being started anew");
}

std::string_view state_of_waiting(std::string_view why, bool stalled, const Observation& seen) {
  if (seen.wanted.deleting()) return "Deleting";
  if (why == reason::kLost) return "Lost";
  if (why == reason::kNoEffect) return seen.memory.held.step == "Pause" ? "Pausing" : "Resuming";
  if (seen.wanted.status.ended_by != api::EndedBy::kNobody) return "Terminating";
  if (stalled) return "Stalled";
  if (seen.wanted.status.sandbox_id.empty()) return "Pending";
  return seen.wanted.status.run == 0 ? "Preparing" : "Unknown";
}

std::string text_of_slow(const Progress& slow) {
  return slow.step + " takes longer than " +
         std::to_string(std::chrono::duration_cast<base::Seconds>(kSlowStep).count()) + " s";
}

// It was done before, as it is wanted now, and in vain.
bool is_repeated(const Observation& seen, std::string_view step) {
  return is_held_as_wanted(seen) && seen.memory.held.step == step;
}

bool says(const Observation& seen, std::string_view why) {
  const auto* ready = api::find_condition(seen.wanted.status, condition::kReady);
  return ready != nullptr && ready->reason == why;
}

// `why` is a word that outlives the story.
Story of_waiting(std::string_view why, const std::string& message, bool stalled,
                 const Observation& seen) {
  Story story{.state = state_of_waiting(why, stalled, seen), .reason = why, .message = message};
  story.stalled = stalled;
  story.reconciling = !stalled;
  if (why == reason::kCredentialsRejected)
    story.message = "the provider refuses its API key: " + message;
  const bool silent = why == reason::kUnknown || why == reason::kProviderUnavailable;
  if (silent && !seen.wanted.status.sandbox_id.empty()) story.ready = "Unknown";
  return story;
}

// One more try is no news before its end.
Story of_repetition(const Observation& seen) {
  const HeldBack& held = seen.memory.held;
  return of_waiting(held.reason, held.why.message, false, seen);
}

Story of_kill(const Observation& seen) {
  if (is_repeated(seen, "Kill")) return of_repetition(seen);
  Story story = of_operation("Kill");
  if (seen.wanted.deleting()) story.state = "Deleting", story.reason = reason::kDeleting;
  return story;
}

// An Operation that is under way: what it does, and at which step it lingers.
Story of_running(const Observation& seen) {
  Story story = seen.operation == "Prepare" ? of_preparation(seen) : of_operation(*seen.operation);
  if (const auto slow = slow_step(seen)) story.message += ": " + text_of_slow(*slow);
  return story;
}

// An executor that answered is asked again: no news until it has said something else.
bool is_asked_again(const Observation& seen) {
  const auto& name = seen.operation;
  const bool asks = name == "AskExecutor" || name == "AskActivity" || name == "QuiesceIdle";
  return asks && !seen.wanted.deleting();
}

// This process has yet to hear from an executor that an earlier one found Ready: a restart of ours
// is no news about the sandbox, so it counts as before until the look has failed.
bool is_looked_at_again(const Observation& seen) {
  return seen.operation == "Prepare" && is_ready_unheard(seen) &&
         api::desired_now(seen.wanted) == api::DesiredState::kRunning &&
         seen.wanted.status.ended_by == api::EndedBy::kNobody;
}

Story of_wait(const Wait& wait, const Observation& seen) {
  if (is_looked_at_again(seen) && !seen.wanted.deleting()) return kept(seen);
  if (is_asked_again(seen)) return kept(seen);
  if (seen.operation && says(seen, reason::kNoEffect) && is_repeated(seen, *seen.operation))
    return of_repetition(seen);
  if (seen.operation == "Kill") return of_kill(seen);
  if (seen.operation && !seen.wanted.deleting()) return of_running(seen);
  if (seen.operation)
    return under_way("Deleting", reason::kDeleting, "waiting for the end of " + *seen.operation);
  return of_waiting(wait.reason, wait.why, wait.stalled, seen);
}

Story story_of(const Observation& seen, const Action& action) {
  if (const auto* wait = std::get_if<Wait>(&action)) return of_wait(*wait, seen);
  if (std::holds_alternative<Kill>(action)) return of_kill(seen);
  if (seen.wanted.deleting()) {
    const bool releases =
        std::holds_alternative<Release>(action) || std::holds_alternative<Leave>(action);
    return under_way("Deleting", releases ? reason::kReleasing : reason::kDeleting,
                     std::string(name_of(action)));
  }
  return std::visit(
      base::Overloaded{
          [&](const Keep&) { return kept(seen); },
          [&](const RecordRun& step) { return running(step.run); },
          [&](const RecordPausedBy& step) {
            if (step.by == api::PausedBy::kNobody) return running(seen.wanted.status.run);
            return under_way("Pausing", reason::kPausing,
                             step.by == api::PausedBy::kUser
                                 ? "paused next, as desiredState asks"
                                 : "paused next, since nothing was active in it for " +
                                       idle_seconds(seen.wanted));
          },
          [&](const RecordEnding& step) {
            if (step.by == api::EndedBy::kNobody) return running(seen.wanted.status.run);
            return under_way("Terminating", reason_of(step.by), "the sandbox is ended for good");
          },
          [&](const RecordTerminated&) {
            return Story{"Terminated", "False", reason_of(seen.wanted.status.ended_by),
                         "the sandbox was ended for good", false};
          },
          [&](const Prepare&) { return of_preparation(seen); },
          [&](const AskExecutor&) { return kept(seen); },
          [&](const AskActivity&) { return kept(seen); },
          [&](const QuiesceIdle&) { return kept(seen); },
          [&](const Pause&) { return of_operation("Pause"); },
          [&](const Connect&) { return of_operation("Connect"); },
          [&](const auto&) {
            return seen.wanted.status.sandbox_id.empty() && !std::holds_alternative<Bind>(action)
                       ? of_operation("Create")
                       : of_operation("Prepare");
          }},
      action);
}

void set_word(api::SandboxStatus& status, const Observation& seen, std::string_view type,
              std::string_view word, std::string_view why, const std::string& message = {}) {
  api::set_condition(status.conditions,
                     {.type = std::string(type),
                      .status = std::string(word),
                      .reason = std::string(why),
                      .message = std::string(base::cut(message, kMessageBytesMax)),
                      .observed_generation = seen.wanted.metadata.generation,
                      .last_transition = seen.wall});
}

void set(api::SandboxStatus& status, const Observation& seen, std::string_view type, bool value,
         std::string_view why, const std::string& message = {}) {
  set_word(status, seen, type, value ? "True" : "False", why, message);
}

// The providers whose list tells no version told it with the way in.
std::string envd_version_of(const Observation& seen, const std::string& id) {
  const auto* found = std::get_if<Found>(&seen.actual);
  if (found && found->info.id == id && !found->info.envd_version.empty())
    return found->info.envd_version;
  const auto& handle = seen.memory.handle;
  return handle && handle->id == id ? handle->envd_version : "";
}

// Where it is reached and by which daemon, as far as that is known: a provider's router may move,
// and a resume may bring another envd.
void show_way_in(api::SandboxStatus& status, const Observation& seen) {
  if (status.sandbox_id.empty() || status.terminated_time) return;
  if (seen.provider) {
    status.endpoint_url = seen.provider->spec.data_url;
    status.endpoint_routing = std::string(api::to_word(seen.provider->spec.routing));
  }
  if (const auto version = envd_version_of(seen, status.sandbox_id); !version.empty())
    status.envd_version = base::cut(version, kVersionBytesMax);
}

void tell(api::SandboxStatus& status, const Observation& seen, const Story& story) {
  show_way_in(status, seen);
  status.observed_generation = seen.wanted.metadata.generation;
  status.state = std::string(story.state);
  set_word(status, seen, condition::kReady, story.ready, story.reason, story.message);
  set(status, seen, condition::kReconciling, story.reconciling, story.reason);
  set(status, seen, condition::kStalled, story.stalled, story.reason,
      story.stalled ? story.message : "");
  const bool bound = !status.sandbox_id.empty();
  set(status, seen, condition::kBound, bound, bound ? reason::kBound : reason::kPending);
  const bool is_of_executor =
      story.reason == reason::kExecutorGone || story.reason == reason::kExecutorNotOurs;
  set(status, seen, condition::kPrepared, story.ready == "True",
      story.ready == "True" ? reason::kPrepared
      : is_of_executor      ? story.reason
                            : reason::kPreparing);
  const bool paused = story.state == "Paused";
  const auto awake = paused ? std::nullopt : why_awake(seen);
  set(status, seen, condition::kPaused, paused,
      paused  ? story.reason
      : awake ? awake->reason
              : reason::kRunning,
      awake ? awake->message : "");
  const bool full = story.reason == reason::kProviderQuotaExceeded;
  set(status, seen, condition::kCapacityAvailable, !full,
      full ? reason::kProviderQuotaExceeded : reason::kReady, full ? story.message : "");
  if (seen.wanted.deleting())
    set(status, seen, condition::kDeleting, true,
        story.reason == reason::kReleasing ? reason::kReleasing : reason::kDeleting, story.message);
}

void add_notice(api::SandboxStatus& status, base::WallTime wall, const std::string& text) {
  if (text.empty()) return;
  const std::int64_t number = status.notices.empty() ? 1 : status.notices.back().number + 1;
  status.notices.push_back({number, wall, text});
  if (status.notices.size() > api::kNoticesMax) status.notices.erase(status.notices.begin());
}

// What is under way before the first Ready is not worth a write of its own, unless it is slow.
bool is_worth_telling(const Observation& seen) {
  if (seen.operation == "Look")
    return seen.wanted.deleting() && !api::find_condition(seen.wanted.status, condition::kDeleting);
  const bool on_the_way = seen.operation && seen.wanted.status.run == 0 && !seen.wanted.deleting();
  return !is_asked_again(seen) && (!on_the_way || slow_step(seen));
}

// The actions that change status only are carried out here. True: it must be written.
bool apply(api::SandboxStatus& status, const Observation& seen, const Action& action) {
  return std::visit(
      base::Overloaded{
          [&](const RecordIncarnation& step) {
            status.incarnation = step.incarnation;
            add_notice(status, seen.wall, step.notice);
            return true;
          },
          [&](const RecordRun& step) {
            status.run = step.run;
            status.start_time = step.start_time;
            status.paused_by = api::PausedBy::kNobody;
            status.wake_seen.clear();
            return true;
          },
          [&](const RecordPausedBy& step) {
            status.paused_by = step.by;
            status.wake_seen = step.wake_seen;
            return true;
          },
          [&](const RecordEnding& step) {
            status.ended_by = step.by;
            return true;
          },
          [&](const RecordTerminated&) {
            status.terminated_time = seen.wall;
            return true;
          },
          [&](const Prepare&) { return seen.memory.executor.kind == ExecutorView::Kind::kGone; },
          [&](const Keep&) { return true; }, [&](const Wait&) { return is_worth_telling(seen); },
          [&](const Kill&) { return true; }, [&](const Release&) { return true; },
          [&](const Leave&) { return true; }, [&](const auto&) { return false; }},
      action);
}

// Later steps build on these, and no look at the provider tells them again.
bool is_record(const Action& action) {
  return std::visit(
      base::Overloaded{
          [](const RecordIncarnation&) { return true; }, [](const RecordRun&) { return true; },
          [](const RecordPausedBy&) { return true; }, [](const RecordEnding&) { return true; },
          [](const RecordTerminated&) { return true; }, [](const auto&) { return false; }},
      action);
}

std::optional<base::Milliseconds> until_due(const Keep& keep, const Observation& seen) {
  std::optional<base::Milliseconds> left;
  if (keep.until) left = *keep.until - seen.wall;
  if (keep.ask_at != base::Moment::max())
    left = std::min(left.value_or(base::Milliseconds::max()), keep.ask_at - seen.now);
  if (left) left = std::clamp(*left, base::Milliseconds(1), kKeepLookMax);
  return left;
}

kube::Requeue when_next(const Observation& seen, const Action& action, const Outcome& outcome) {
  if (outcome.error) return {.failed = true};
  // The Operation's end brings the key back; a slow one is shown meanwhile.
  if (outcome.begun) return {.after = kSlowStep};
  if (const auto* wait = std::get_if<Wait>(&action)) {
    if (wait->again == base::Milliseconds(0)) return {};
    return {.after = wait->again};
  }
  if (const auto* keep = std::get_if<Keep>(&action)) {
    return {.after = until_due(*keep, seen)};
  }
  if (std::holds_alternative<RemoveFinalizer>(action) ||
      std::holds_alternative<DeleteObject>(action))
    return {};
  return {.after = base::Milliseconds(0)};
}

// Once, when its condition says so first.
std::optional<api::Event> news_of_idleness(const Observation& seen) {
  const auto awake = kept(seen).state == "Running" ? why_awake(seen) : std::nullopt;
  const auto* before = api::find_condition(seen.wanted.status, condition::kPaused);
  if (!awake || (before && before->reason == awake->reason)) return std::nullopt;
  return api::Event{"Warning", std::string(awake->reason), "Keep", awake->message};
}

std::optional<api::Event> event_of(const Observation& seen, const Action& action,
                                   const Outcome& outcome) {
  const std::string name(name_of(action));
  const bool again = is_repeated(seen, name);
  if (outcome.error) return api::Event{"Warning", name + "Failed", name, outcome.error->message};
  const auto normal = [&](std::string why, std::string note) {
    return api::Event{"Normal", std::move(why), name, std::move(note)};
  };
  using Event = std::optional<api::Event>;
  return std::visit(
      base::Overloaded{
          [&](const Bind& step) {
            if (outcome.begun) return Event(normal("Killing", "E2B sandbox " + step.id));
            return Event(normal("Created", "E2B sandbox " + step.id));
          },
          [&](const RecordRun& step) {
            return Event(normal("Ready", "run " + std::to_string(step.run)));
          },
          [&](const Prepare&) {
            if (seen.memory.executor.kind != ExecutorView::Kind::kGone) return Event();
            return Event(api::Event{"Warning", std::string(reason::kExecutorGone), name,
                                    of_preparation(seen).message});
          },
          [&](const RecordIncarnation& step) {
            if (step.notice.empty()) return Event();
            return Event(api::Event{"Warning", "ProcessesLost", name, step.notice});
          },
          [&](const Connect& step) {
            if (again) return Event();
            if (seen.wanted.status.paused_by == api::PausedBy::kNobody)
              return Event(api::Event{"Warning", "PausedUnderUs", name,
                                      step.id + " was paused by another hand; resuming it"});
            const bool idled = seen.wanted.status.paused_by == api::PausedBy::kIdle;
            return Event(normal(idled ? "Waking" : "Resuming", step.id));
          },
          [&](const Keep&) { return news_of_idleness(seen); },
          [&](const RecordPausedBy& step) {
            if (step.by != api::PausedBy::kIdle) return Event();
            return Event(normal(std::string(reason::kIdle),
                                "nothing was active in it for " + idle_seconds(seen.wanted)));
          },
          [&](const Pause& step) { return again ? Event() : Event(normal("Pausing", step.id)); },
          [&](const Kill& step) {
            if (again || seen.memory.killed.contains(step.id)) return Event();
            return Event(normal("Killing", "E2B sandbox " + step.id));
          },
          [&](const Release& step) { return Event(normal("Released", "E2B sandbox " + step.id)); },
          [&](const RecordEnding& step) {
            if (step.by == api::EndedBy::kNobody) return Event();
            return Event(normal("Ending", std::string(reason_of(step.by))));
          },
          [&](const Wait& step) {
            if (const auto slow = slow_step(seen); slow && !slow->told)
              return Event(api::Event{"Warning", "SlowStep", *seen.operation, text_of_slow(*slow)});
            const bool in_vain = step.reason == reason::kNoEffect && !says(seen, step.reason);
            const bool news =
                in_vain || (step.stalled &&
                            seen.wanted.status.state != state_of_waiting(step.reason, true, seen));
            if (!news) return Event();
            return Event(api::Event{"Warning", step.reason, name, step.why});
          },
          [&](const auto&) { return Event(); }},
      action);
}

}  // namespace

Report report(const Observation& seen, const Action& action, const Outcome& outcome) {
  Report news{.status = seen.wanted.status};
  const bool applied = !outcome.error && apply(news.status, seen, action);
  tell(news.status, seen, story_of(seen, action));
  // A fast step on the way is not worth a write; what waits, stays or is recorded is. A failure is
  // told by the pass that waits it out.
  news.write = applied && !outcome.written;
  if (is_record(action)) news.durability = api::ResourceStore::Durability::kNow;
  news.event = event_of(seen, action, outcome);
  news.requeue = when_next(seen, action, outcome);
  return news;
}

api::SandboxStatus bound_status(const Observation& seen, const Bind& step) {
  api::SandboxStatus status = seen.wanted.status;
  const bool anew = status.epoch != step.attempt.epoch;
  status.sandbox_id = step.id;
  status.epoch = step.attempt.epoch;
  if (anew || status.incarnation == 0) ++status.incarnation;
  status.run = 0;
  status.start_time.reset();
  status.paused_by = api::PausedBy::kNobody;
  status.wake_seen.clear();
  tell(status, seen, story_of(seen, step));
  return status;
}

}  // namespace controller
