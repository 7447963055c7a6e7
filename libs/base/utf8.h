#pragma once

#include <cstddef>
#include <string_view>

namespace base {

// How far bytes are well-formed UTF-8 (RFC 3629: no overlong form, no surrogate, nothing above
// U+10FFFF).
struct Utf8Prefix {
  std::size_t bytes = 0;  // In whole characters.
  bool broken = false;    // No bytes to come can make a character of what follows them.
};
Utf8Prefix utf8_prefix(std::string_view bytes);
bool is_utf8(std::string_view bytes);

}  // namespace base
