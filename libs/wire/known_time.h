#pragma once

#include <algorithm>

#include "libs/base/clock.h"

namespace wire {

// The best a serving side knows of the time: its own clock may have stood still in a pause, so it
// is the latest of that, the birth of the newest valid token and what `resumed` said.
class KnownTime {
 public:
  void learn(base::WallTime time) { latest_ = std::max(latest_, time); }
  base::WallTime now(base::WallTime own_clock) const { return std::max(own_clock, latest_); }

 private:
  base::WallTime latest_{};
};

}  // namespace wire
