#include "controller/reconcile/idle.h"

#include <algorithm>
#include <utility>

#include "libs/api/annotations.h"

namespace controller {

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
  if (!idle) return std::nullopt;
  if (view.idle_for >= *idle)
    return QuiesceIdle{id, *idle, api::request_to_wake(seen.wanted.metadata)};
  if (seen.now < view.ask_at) return std::nullopt;
  return AskActivity{id, *idle};
}

base::Moment next_look_whether_idle(const Observation& seen) {
  return seen.wanted.spec.lifecycle.idle ? seen.memory.idle.ask_at : base::Moment::max();
}

IdleView heard(const base::Result<wire::Activity>& answer, base::Seconds idle, base::Moment now,
               base::Moment put_off) {
  if (!answer) return {.ask_at = put_off};
  const base::Milliseconds idle_for(answer->idle_ms);
  return {.ask_at = now + std::max<base::Milliseconds>(idle - idle_for, kIdleLookMin),
          .idle_for = idle_for};
}

void note_executor(Memory& memory, ExecutorView view) {
  if (memory.executor.health.instance != view.health.instance) memory.idle = {};
  memory.executor = std::move(view);
}

}  // namespace controller
