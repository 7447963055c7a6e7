#pragma once

#include <mutex>

#include "libs/base/clock.h"

namespace base {

// A clock that only its test moves; the wall may also jump by itself. Safe to share between
// threads.
class FakeClock final : public Clock {
 public:
  Moment now() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  WallTime wall() const override {
    std::lock_guard lock(mutex_);
    return wall_;
  }
  void advance(Milliseconds by) {
    std::lock_guard lock(mutex_);
    now_ += by;
    wall_ += by;
  }
  void jump_wall(Milliseconds by) {
    std::lock_guard lock(mutex_);
    wall_ += by;
  }

 private:
  mutable std::mutex mutex_;
  Moment now_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::hours(24 * 365 * 56)};
};

}  // namespace base
