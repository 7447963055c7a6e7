#pragma once

#include <functional>

#include "libs/aio/task.h"
#include "libs/base/fd.h"

namespace agentd {

// Hands on each connection that comes to `listener`, until it is cancelled. Where there are no
// descriptors for more, they wait outside.
aio::Task<> accept_all(aio::Executor executor, base::Fd listener,
                       std::function<void(base::Fd connection)> admit);

}  // namespace agentd
