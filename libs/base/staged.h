#pragma once

#include <string>
#include <string_view>

namespace base {

// What a file is called until it takes the place of `name` beside it; another one each time.
std::string staged_name(std::string_view name);
// Whether staged_name() gives such names: such a file is a leftover once nobody writes there.
bool is_staged_name(std::string_view name);
// The same of `target` alone.
bool is_staged_name_of(std::string_view target, std::string_view name);

}  // namespace base
