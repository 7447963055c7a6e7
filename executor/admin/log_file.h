#pragma once

#include <filesystem>

#include "libs/base/result.h"

namespace executor {

inline constexpr std::size_t kLogBytesMax = 1u << 20;

// From now on what goes to stderr goes to this file, at its end. kInvalid: something else has its
// name.
base::Result<base::Done> log_to(const std::filesystem::path& path);

// Empties the file that stderr goes to when it has grown past kLogBytesMax. For each start of a
// serving process, of which every one says the same few lines.
void bound_log();

}  // namespace executor
