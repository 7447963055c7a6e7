#pragma once

#include <filesystem>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace base {

// The SHA-256, in hexadecimal, of what can still be read from `file`. `path` is for the message.
// Blocks.
Result<std::string> sha256_of(const Fd& file, const std::filesystem::path& path);

}  // namespace base
