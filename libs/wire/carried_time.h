#pragma once

#include "libs/base/clock.h"

namespace wire {

// A time of day that was known at a moment, carried on by the monotonic clock: to set a wall clock
// moves it nowhere.
struct CarriedTime {
  base::WallTime known;
  base::Moment then;

  base::WallTime at(base::Moment moment) const { return known + (moment - then); }
};

}  // namespace wire
