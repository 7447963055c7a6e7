#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/archives/failure.h"

namespace archives {

inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::size_t kNameBytesMax = 255;
inline constexpr std::size_t kDepthMax = 256;

// The names of an entry's path, or of what a hard link leads to; none for the top itself. kUnfit
// for a path that is absolute or goes back; kTooLarge.
Result<std::vector<std::string>> names_of(std::string_view path);

// Whether a link in the folder of these names that reads so leads out of the top, by its words
// alone: what it goes through may be a link itself.
bool leads_out(const std::vector<std::string>& folder, std::string_view link);

}  // namespace archives
