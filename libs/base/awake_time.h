#pragma once

#include <algorithm>

#include "libs/base/clock.h"

namespace base {

// Time in which this process was not frozen, counted in looks at the clock: a gap of more than
// kGapMax between two looks counts as kGapMax, because the process cannot have been awake for it.
class AwakeTime {
 public:
  static constexpr Milliseconds kGapMax{2000};
  explicit AwakeTime(Moment now) : last_(now) {}
  Milliseconds look(Moment now) {  // In all, up to now.
    awake_ += std::clamp(now - last_, Milliseconds(0), kGapMax);
    last_ = now;
    return awake_;
  }

 private:
  Moment last_;
  Milliseconds awake_{};
};

}  // namespace base
