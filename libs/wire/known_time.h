#pragma once

#include <algorithm>

#include "libs/base/clock.h"
#include "libs/wire/carried_time.h"

namespace wire {

// What the clocks of fleet and sandbox may differ by.
inline constexpr base::Milliseconds kClockSlack = std::chrono::minutes(5);

// The time as a serving side knows it, for judging whether a token has ended: what it was told
// last, carried on by the monotonic clock, so that setting a wall clock moves nothing. The latest
// of its own wall clock and the births of valid tokens counts beyond that, since a pause may have
// gone unheard; only up to the slack, or one whose clock was ahead for a moment would lock out all
// others.
class KnownTime {
 public:
  explicit KnownTime(const base::Clock& clock)
      : clock_(clock), told_{clock.wall(), clock.now()}, birth_(told_) {}

  base::WallTime now() const {
    const base::Moment moment = clock_.now();
    const base::WallTime told = told_.at(moment);
    const base::WallTime heard = std::max(clock_.wall(), birth_.at(moment));
    return std::clamp(heard, told, told + kClockSlack);
  }
  // The birth of a valid token.
  void learn(base::WallTime birth) {
    const base::Moment moment = clock_.now();
    if (birth > birth_.at(moment)) birth_ = {birth, moment};
  }
  // By the controller, which is believed whatever it says.
  void tell(base::WallTime now) { told_ = birth_ = {now, clock_.now()}; }

 private:
  const base::Clock& clock_;
  CarriedTime told_, birth_;
};

}  // namespace wire
