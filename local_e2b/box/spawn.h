#pragma once

#include <sys/types.h>

#include <filesystem>

#include "libs/base/result.h"

namespace local_e2b {

// Starts a program with one argument, these as its stdin and stdout, our stderr and nothing else of
// ours. The caller reaps it.
base::Result<pid_t> spawn(const std::filesystem::path& program, const char* argument, int input,
                          int output);

}  // namespace local_e2b
