#pragma once

#include <string>

#include "executor/subprocess/environment.h"

namespace executor {

// The canonical path of a program: an absolute one must be an executable regular file, a bare name
// is looked for in the PATH of `environment`, whose relative and empty entries are passed over.
// Blocks.
ProcessResult<std::string> resolve_executable(const std::string& command,
                                              const Environment& environment);

}  // namespace executor
