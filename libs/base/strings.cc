#include "libs/base/strings.h"

#include <algorithm>
#include <charconv>

#include "libs/base/crypto.h"
#include "libs/base/utf8.h"

namespace base {
namespace {

char lower_char(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// What breaks a line or turns the direction of what stands beside it: unlike a control character
// each is shown as nothing at all.
constexpr std::string_view kUnseen[] = {"\u061C", "\u200E", "\u200F", "\u2028", "\u2029",
                                        "\u202A", "\u202B", "\u202C", "\u202D", "\u202E",
                                        "\u2066", "\u2067", "\u2068", "\u2069"};

// The bytes of a character that steers whoever shows it, where one begins the text, which is UTF-8;
// else 0.
std::size_t steering_at(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  // U+0080 to U+009F: some terminals take U+009B as they take ESC [.
  if (byte == 0xC2) return static_cast<unsigned char>(text[1]) < 0xA0 ? 2 : 0;
  for (const std::string_view unseen : kUnseen)
    if (text.starts_with(unseen)) return unseen.size();
  return 0;
}

void append_tamed(std::string& line, std::string_view text) {
  while (!text.empty()) {
    const std::size_t steering = steering_at(text);
    line += steering > 0 ? ' ' : text[0];
    text.remove_prefix(std::max<std::size_t>(steering, 1));
  }
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
}

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = lower_char(c);
  return lowered;
}

std::string_view cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (;;) {
    const std::size_t whole = utf8_prefix(text).bytes;
    append_tamed(line, text.substr(0, whole));
    if (whole == text.size()) return line;
    line += '?';
    text.remove_prefix(whole + 1);
  }
}

bool equal_ignoring_case(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    if (unreserved(c)) {
      encoded += c;
      continue;
    }
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    if (at + 2 >= text.size()) return std::nullopt;
    const auto byte = from_hex(text.substr(at + 1, 2));
    if (!byte) return std::nullopt;
    decoded += *byte;
    at += 2;
  }
  return decoded;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace base
