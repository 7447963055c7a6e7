#include "controller/reconcile/idle.h"

#include <algorithm>
#include <utility>

#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/version.h"

namespace controller {
namespace {

constexpr int kUnheardMax = 3;  // So often in a row, an executor that does not answer is news.

base::Moment put_off_until(const Observation& seen) {
  const auto& trouble = seen.memory.idle.trouble;
  const api::Metadata& metadata = seen.wanted.metadata;
  const bool holds = trouble && trouble->generation == metadata.generation &&
                     trouble->request == api::request_to_look(metadata);
  return holds ? trouble->until : base::Moment{};
}

WhyAwake text_of(const IdleTrouble& trouble, const Observation& seen) {
  if (trouble.step == IdleTrouble::Step::kIdleAction) {
    const bool ends = seen.wanted.spec.lifecycle.idle_action == api::IdleAction::kTerminate;
    return {api::reason::kIdleActionFailed, "it idles, and could not be " +
                                                std::string(ends ? "ended" : "paused") + ": " +
                                                trouble.what};
  }
  std::string message = "whether it idles is not known, so it goes on: " + trouble.what;
  const std::string& version = seen.memory.executor.health.version;
  if (!version.empty() && version != base::kVersion)
    message += "; its executor is of version " + version + ", and this controller of " +
               std::string(base::kVersion) +
               ": one of an earlier version may not know, and another takes its place when it ends";
  return {api::reason::kIdlenessUnknown, std::move(message)};
}

}  // namespace

std::optional<Action> record_idle(const Observation& seen) {
  const auto& lifecycle = seen.wanted.spec.lifecycle;
  const IdleView& view = seen.memory.idle;
  if (!lifecycle.idle || !view.record_by || seen.now >= *view.record_by) return std::nullopt;
  // On record already, and asked for since.
  if (seen.wanted.status.paused_by == api::PausedBy::kIdle) return std::nullopt;
  if (lifecycle.idle_action == api::IdleAction::kTerminate)
    return RecordEnding{api::EndedBy::kIdle};
  return RecordPausedBy{api::PausedBy::kIdle, view.wake_seen};
}

std::optional<Action> look_whether_idle(const Observation& seen, const std::string& id) {
  const auto& idle = seen.wanted.spec.lifecycle.idle;
  const IdleView& view = seen.memory.idle;
  if (!idle || seen.now < put_off_until(seen)) return std::nullopt;
  if (view.idle_for >= *idle)
    return QuiesceIdle{id, *idle, api::request_to_wake(seen.wanted.metadata)};
  if (seen.now < view.ask_at) return std::nullopt;
  return AskActivity{id, *idle};
}

base::Moment next_look_whether_idle(const Observation& seen) {
  if (!seen.wanted.spec.lifecycle.idle) return base::Moment::max();
  return std::max(seen.memory.idle.ask_at, put_off_until(seen));
}

IdleView heard(const IdleView& before, const base::Result<wire::Activity>& answer,
               base::Seconds idle, base::Moment now) {
  if (!answer) return afresh(before);
  const base::Milliseconds idle_for(answer->idle_ms);
  IdleView view{.ask_at = now + std::max<base::Milliseconds>(idle - idle_for, kIdleLookMin),
                .idle_for = idle_for,
                .trouble = before.trouble};
  taken(view, IdleTrouble::Step::kAskActivity);
  return view;
}

IdleView afresh(const IdleView& before, base::Moment ask_at) {
  return {.ask_at = ask_at, .trouble = before.trouble};
}

IdleTrouble again(const std::optional<IdleTrouble>& before, IdleTrouble::Step step,
                  std::string what, const api::Sandbox& wanted) {
  return {.step = step,
          .failures = before && before->step == step ? before->failures + 1 : 1,
          .what = std::move(what),
          .generation = wanted.metadata.generation,
          .request = api::request_to_look(wanted.metadata)};
}

void taken(IdleView& view, IdleTrouble::Step step) {
  if (view.trouble && view.trouble->step <= step) view.trouble.reset();
}

bool is_told(const std::optional<IdleTrouble>& trouble) {
  return trouble &&
         (trouble->step == IdleTrouble::Step::kIdleAction || trouble->failures >= kUnheardMax);
}

std::optional<WhyAwake> why_awake(const Observation& seen) {
  const api::Sandbox& wanted = seen.wanted;
  const bool may_idle = wanted.spec.lifecycle.idle && !wanted.deleting() &&
                        wanted.spec.desired_state == api::DesiredState::kRunning &&
                        wanted.status.ended_by == api::EndedBy::kNobody;
  if (!may_idle) return std::nullopt;
  const IdleView& view = seen.memory.idle;
  if (is_told(view.trouble)) return text_of(*view.trouble, seen);
  const auto* before = api::find_condition(wanted.status, api::condition::kPaused);
  if (view.idle_for || !before) return std::nullopt;
  for (const auto reason : {api::reason::kIdlenessUnknown, api::reason::kIdleActionFailed})
    if (before->reason == reason) return WhyAwake{reason, before->message};
  return std::nullopt;
}

void note_executor(Memory& memory, ExecutorView view) {
  if (memory.executor.health.instance != view.health.instance) memory.idle = {};
  memory.executor = std::move(view);
}

}  // namespace controller
