#pragma once

#include <filesystem>
#include <vector>

namespace base {

// What stands in a folder, in no order; nothing when it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace base
