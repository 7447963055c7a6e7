#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "libs/base/clock.h"

namespace base {

// Looks at a fact again and again; false when it has not come true in all that time.
inline bool eventually(const std::function<bool()>& fact, Seconds patience = Seconds(20)) {
  constexpr Milliseconds kBetweenLooks{5};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!fact()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace base
