#pragma once

#include <utility>

#include "libs/aio/loop.h"

namespace aio::testing {

inline Task<int> to_its_end(Task<> story) {
  co_await std::move(story);
  co_return 0;
}

// Runs what a test tells as a coroutine.
inline void run(Loop& loop, Task<> story) { loop.run(to_its_end(std::move(story))); }

}  // namespace aio::testing
