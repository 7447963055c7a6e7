#pragma once

#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace base {

// "2026-11-29T17:46:31.120Z": RFC 3339 in UTC; the fraction is left out when it is zero.
std::string to_rfc3339(WallTime time);
// Reads RFC 3339 with any offset and up to nanoseconds (cut to milliseconds).
Result<WallTime> parse_rfc3339(std::string_view text);
// Reads an HTTP date (RFC 9110 §5.6.7, the IMF-fixdate form): "Sun, 29 Nov 2026 17:46:31 GMT".
Result<WallTime> parse_http_date(std::string_view text);
std::string to_http_date(WallTime time);

}  // namespace base
