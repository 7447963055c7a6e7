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

// The same of a story that a Site, which has a loop, is made for.
template <typename Site, typename... Arguments>
void tell(Task<> (*story)(Site&), Arguments... arguments) {
  Site site(arguments...);
  run(site.loop, story(site));
}

}  // namespace aio::testing
