#pragma once

#include <chrono>
#include <cstdint>

namespace base {

// Monotonic: deadlines and ages. It stands still for nobody and never jumps.
using Moment = std::chrono::time_point<std::chrono::steady_clock, std::chrono::milliseconds>;
// Wall time, UTC: what is shown to people or compared with another machine's timestamps.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;
using Milliseconds = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

// Time as a parameter, so that a test can move it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Moment now() const = 0;
  virtual WallTime wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  Moment now() const override {
    return std::chrono::time_point_cast<Milliseconds>(std::chrono::steady_clock::now());
  }
  WallTime wall() const override {
    return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now());
  }
};

}  // namespace base
