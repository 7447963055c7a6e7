#pragma once

#include <memory>

#include "executor/process/pty.h"
#include "executor/process/spawn.h"
#include "libs/base/result.h"

namespace executor {

// Takes the terminal of a command that was launched in one, and makes its other ends: what it shows
// comes out of `stdout_end`, and when it is `typed_into` what is typed goes into `stdin_end`. While
// somebody holds what is returned, the terminal does not end, also when all who had it open have
// closed it: one of them may come back to it. kRateLimited: no descriptor is to be had.
base::Result<std::shared_ptr<const Terminal>> hold_terminal(Launched& ends, bool typed_into);

}  // namespace executor
