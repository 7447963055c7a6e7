#pragma once

#include <optional>

#include "controller/reconcile/decide.h"

// How the life of a Sandbox ends at the provider, and its resource after that. Pure.
namespace controller {

// For which reason it is to be ended now, other than that it idles.
api::EndedBy due_ending(const Observation& seen);
// When there is such a reason at the latest.
std::optional<base::WallTime> next_ending(const api::Sandbox& wanted);

// The next step of one that is ended while its resource stays.
Action end_for_good(const Observation& seen);
// The next step of one whose resource is being deleted.
Action say_goodbye(const Observation& seen);

}  // namespace controller
