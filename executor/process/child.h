#pragma once

#include <sys/types.h>

#include <memory>

#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/result.h"

namespace executor {

// Until a child of ours has ended. It stays to be reaped, so its number is still its own.
// `exit_notice` is over its pidfd.
aio::Task<base::Result<base::Done>> until_ended(std::shared_ptr<aio::Stream> exit_notice,
                                                pid_t pid);
int reap(pid_t ended);  // Its wait status.

}  // namespace executor
