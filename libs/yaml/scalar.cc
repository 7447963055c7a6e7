#include <charconv>
#include <cmath>
#include <optional>

#include "libs/yaml/reader.h"

namespace yaml {

using base::Json;

namespace {

std::optional<bool> as_bool(std::string_view word) {
  for (const char* yes : {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
    if (word == yes) return true;
  for (const char* no :
       {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
    if (word == no) return false;
  return std::nullopt;
}

bool is_null(std::string_view word) {
  return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

// The base and the digits after its prefix: 0x1F, 0b101, 0o17 and the octal 017 of YAML 1.1.
std::pair<int, std::string_view> base_of(std::string_view digits) {
  if (digits.size() > 2 && digits[0] == '0') {
    const char mark = digits[1];
    if (mark == 'x' || mark == 'X') return {16, digits.substr(2)};
    if (mark == 'b' || mark == 'B') return {2, digits.substr(2)};
    if (mark == 'o' || mark == 'O') return {8, digits.substr(2)};
  }
  if (digits.size() > 1 && digits[0] == '0') return {8, digits.substr(1)};
  return {10, digits};
}

std::optional<Json> as_integer(std::string_view word) {
  const bool negative = word.starts_with('-');
  const std::string_view unsigned_word =
      word.starts_with('-') || word.starts_with('+') ? word.substr(1) : word;
  if (unsigned_word.empty() || unsigned_word[0] < '0' || unsigned_word[0] > '9')
    return std::nullopt;
  const auto [radix, digits] = base_of(unsigned_word);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (!negative && value > limit) return Json(value);
  if (value > limit) return std::nullopt;
  return Json(negative ? static_cast<std::int64_t>(0 - value) : static_cast<std::int64_t>(value));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view word) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
    return at - from;
  };
  const auto skip = [&](std::string_view any) {
    if (at >= word.size() || any.find(word[at]) == std::string_view::npos) return false;
    ++at;
    return true;
  };
  skip("-+");
  const std::size_t whole = digits();
  const bool point = skip(".");
  const std::size_t fraction = point ? digits() : 0;
  if (whole + fraction == 0) return false;
  if (skip("eE")) {
    skip("-+");
    if (digits() == 0) return false;
  }
  return at == word.size();
}

Json number_of(double value) {
  constexpr double kExactMax = 9007199254740992;  // 2^53: every whole number up to it is exact.
  if (std::trunc(value) == value && std::abs(value) <= kExactMax)
    return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace

base::Result<Json> resolve_plain_scalar(const std::string& word) {
  if (is_null(word)) return Json(nullptr);
  if (const auto truth = as_bool(word)) return Json(*truth);
  std::string digits;
  for (const char letter : word)
    if (letter != '_') digits += letter;
  if (auto integer = as_integer(digits)) return *integer;
  if (looks_like_float(digits)) {
    double value = 0;
    const char* start = digits.c_str() + (digits[0] == '+' ? 1 : 0);
    std::from_chars(start, digits.c_str() + digits.size(), value);
    if (std::isfinite(value)) return number_of(value);
  }
  for (const char* infinite : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
    if (word == infinite || word == std::string("-") + infinite ||
        word == std::string("+") + infinite)
      return base::error(base::ErrorCode::kInvalid, word, " is no number that JSON knows");
  return Json(word);
}

}  // namespace yaml
