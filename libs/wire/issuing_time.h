#pragma once

#include <algorithm>
#include <mutex>

#include "libs/base/clock.h"
#include "libs/wire/carried_time.h"

namespace wire {

// The time by which tokens are issued: a wall clock that was set back goes on from where it was.
// Whoever judges the tokens has heard of a later time already. Safe to share between threads.
class IssuingTime {
 public:
  explicit IssuingTime(const base::Clock& clock)
      : clock_(clock), latest_{clock.wall(), clock.now()} {}

  base::WallTime now() const {
    std::lock_guard lock(mutex_);
    const base::Moment moment = clock_.now();
    latest_ = {std::max(clock_.wall(), latest_.at(moment)), moment};
    return latest_.known;
  }

 private:
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  mutable CarriedTime latest_;
};

}  // namespace wire
