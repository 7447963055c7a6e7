#pragma once

#include <functional>

#include "libs/aio/task.h"

namespace aio {

// Has the loop call `work` in a turn of its own. From any thread, as long as the loop is there.
void post(const Executor& executor, std::function<void()> work);

}  // namespace aio
