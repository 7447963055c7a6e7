#pragma once

#include <algorithm>
#include <cstdint>

#include "libs/base/clock.h"

namespace base {

// How long to wait before the next try of what has failed.
struct BackOff {
  Milliseconds first, most;

  // `first` after one failure, doubled with each further one in a row, up to `most`. `chance`, from
  // 0 to 1, takes up to half of that away: what failed for many at once is not tried again by all
  // of them at once.
  Milliseconds after(int failures, double chance = 0) const {
    constexpr int kDoublingsMax = 30;
    const int doublings = std::clamp(failures - 1, 0, kDoublingsMax);
    const auto whole = std::min(first * (std::int64_t{1} << doublings), most);
    const double kept = 1 - chance / 2;
    return Milliseconds(static_cast<std::int64_t>(static_cast<double>(whole.count()) * kept));
  }
};

}  // namespace base
