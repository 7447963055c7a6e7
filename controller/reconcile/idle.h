#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/reconcile/decide.h"

// Whether a sandbox that runs idles, and what comes of that (docs/design/idle.md). Pure.
//
//   AskActivity -> QuiesceIdle, which is refused where something is active -> on record -> Pause or
//   Kill, which ask the same once more, or off the record
namespace controller {

inline constexpr base::Milliseconds kIdleLookMin{1'000};  // From one look to the next.
// From a quiesce for idleness to its record. It lapses later (wire::Quiesce), so that nothing can
// begin in between.
inline constexpr base::Milliseconds kIdleRecordWithin{60'000};

// What goes on record of one that stands still because it idled.
std::optional<Action> record_idle(const Observation& seen);
// The next step towards that, if one is due in a sandbox where nothing else is.
std::optional<Action> look_whether_idle(const Observation& seen, const std::string& id);
// When that is due again; Moment::max(): never.
base::Moment next_look_whether_idle(const Observation& seen);

// What an answer to AskActivity makes of the view.
IdleView heard(const IdleView& before, const base::Result<wire::Activity>& answer,
               base::Seconds idle, base::Moment now);
// Nothing is known of its idleness now, but what was in the way before.
IdleView afresh(const IdleView& before, base::Moment ask_at = {});

// That step failed once more; what it was before counts no longer.
IdleTrouble again(const std::optional<IdleTrouble>& before, IdleTrouble::Step step,
                  std::string what, const api::Sandbox& wanted);
// That step was taken.
void taken(IdleView& view, IdleTrouble::Step step);

// Why a sandbox that may idle is awake, where that is worth telling: what its condition Paused says
// meanwhile. Nothing is told of an executor that answers the next time; what an earlier process
// told stands until something is known.
struct WhyAwake {
  std::string_view reason;
  std::string message;
};
std::optional<WhyAwake> why_awake(const Observation& seen);
bool is_told(const std::optional<IdleTrouble>& trouble);

// The executor as it is known now. What is remembered of idleness is of one executor: it goes when
// this is another, or none that answers.
void note_executor(Memory& memory, ExecutorView view);

}  // namespace controller
