#include "agentd/carry/token_end.h"

#include "libs/base/crypto.h"
#include "libs/base/json.h"

namespace agentd {

std::optional<base::WallTime> end_of_token(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = token.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto text = base::from_base64url(token.substr(first + 1, second - first - 1));
  if (!text) return std::nullopt;
  const auto claims = base::parse_json(*text);
  if (!claims) return std::nullopt;
  const auto end = base::integer_at(*claims, "exp");
  constexpr std::int64_t kLast = 253'402'300'799;  // Of the year 9999.
  if (!end || *end < 0 || *end > kLast) return std::nullopt;
  return base::WallTime(base::Seconds(*end));
}

}  // namespace agentd
