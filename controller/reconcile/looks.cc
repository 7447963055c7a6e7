#include "controller/reconcile/looks.h"

#include <utility>

#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {

Wait wait(std::string_view reason, std::string why, base::Milliseconds again) {
  return Wait{std::string(reason), std::move(why), again};
}

Wait stalled(std::string_view reason, std::string why) {
  return {std::string(reason), std::move(why), base::Milliseconds(0), true};
}

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

}  // namespace controller
