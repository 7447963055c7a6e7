#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "libs/base/clock.h"

namespace base {

// Sleeps for `time`, or until `stop` is asked for; not at all when it was, or when `time` is over.
inline void rest(Milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace base
