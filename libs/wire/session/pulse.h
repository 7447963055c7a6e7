#pragma once

#include "libs/base/clock.h"

namespace wire {

inline constexpr base::Milliseconds kPingAfter{20'000};
inline constexpr base::Milliseconds kDeadAfter{45'000};

// Whether the other end of a link still lives, by what was heard of it.
class Pulse {
 public:
  explicit Pulse(base::Moment now) : heard_(now), asked_(now) {}
  void heard(base::Moment now) { heard_ = asked_ = now; }
  bool dead(base::Moment now) const { return now - heard_ >= kDeadAfter; }
  // True when it is time to ask; the caller then does.
  bool ask(base::Moment now) {
    if (now - asked_ < kPingAfter) return false;
    asked_ = now;
    return true;
  }

 private:
  base::Moment heard_, asked_;
};

}  // namespace wire
