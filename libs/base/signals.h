#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace base {

// "SIGTERM"; "SIG34" where it has no name.
std::string signal_name(int number);
// Nothing when this kernel has no such signal.
std::optional<int> signal_number(std::string_view name);

}  // namespace base
