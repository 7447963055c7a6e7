#pragma once

#include <string_view>

namespace base {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace base
