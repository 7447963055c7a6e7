#pragma once

#include <optional>

#include "libs/base/awake_time.h"
#include "libs/base/clock.h"

namespace executor {

// Whether the executor stands still for a pause. It lapses by itself after its deadline in awake
// time, so that a pause that never came does not leave it closed for ever.
class PauseGuard {
 public:
  void quiesce(base::Seconds deadline, base::Moment now);
  void thaw() { awake_.reset(); }
  bool quiesced() const { return awake_.has_value(); }
  bool look(base::Moment now);  // True when it has just lapsed.

 private:
  std::optional<base::AwakeTime> awake_;
  base::Milliseconds deadline_{};
};

// The best this executor knows of the time: its own clock may have stood still in a pause, so it is
// the latest of that, the birth of the newest valid token and what `resumed` said.
class KnownTime {
 public:
  void learn(base::WallTime time) { latest_ = std::max(latest_, time); }
  base::WallTime now(base::WallTime own_clock) const { return std::max(own_clock, latest_); }

 private:
  base::WallTime latest_{};
};

}  // namespace executor
