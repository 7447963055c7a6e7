#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace base {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII only.
// At most its first `bytes_max` bytes, without half a UTF-8 character at the end.
std::string_view cut(std::string_view text, std::size_t bytes_max);
// A stranger's text that stays in its line, and no longer: controls are ' ', what is not UTF-8 '?'.
std::string on_one_line(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);
// RFC 3986: all but A-Z a-z 0-9 - . _ ~ becomes %XX.
std::string percent_encode(std::string_view text);
// %XX back to bytes, '+' stays '+'; nothing when a % is not followed by two digits.
std::optional<std::string> percent_decode(std::string_view text);
// The whole text as a decimal number.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace base
