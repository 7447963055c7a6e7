#pragma once

#include "executor/options.h"

namespace executor {

int run_envd(const EnvdOptions& options);
int run_executor(const RunOptions& options);
int run_stand_in();

}  // namespace executor
