#pragma once

#include <string>
#include <string_view>

#include "controller/reconcile/decide.h"

// How decisions wait, and look before they act. Pure.
namespace controller {

inline constexpr base::Milliseconds kLookAgain{2'000};  // For what is expected to change.

Wait wait(std::string_view reason, std::string why, base::Milliseconds again = kLookAgain);
Wait stalled(std::string_view reason, std::string why);

// A step that may fail again waits out its delay first, unless the resource has changed since.
Action unless_held(const Observation& seen, Action action);

// A full list, unless the last one is but a moment old.
Action look_list(const Observation& seen, std::string_view reason, const std::string& why);

// GET, then a full list, then GET again: what the proof of absence needs next.
Action look_for_bound(const Observation& seen);

}  // namespace controller
