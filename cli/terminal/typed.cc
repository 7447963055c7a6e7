#include "cli/terminal/typed.h"

#include <cctype>
#include <utility>

namespace cli {
namespace {

constexpr char kControlZ = 'Z' & 0x1f;

std::optional<Wish> wish_of(char typed) {
  if (typed == '.') return Wish::kLeave;
  if (typed == kControlZ) return Wish::kStop;
  if (typed == '?') return Wish::kHelp;
  return std::nullopt;
}

}  // namespace

std::vector<Typed> Escapes::read(std::string_view bytes) {
  std::vector<Typed> all;
  std::string on;
  const auto flush = [&] {
    if (!on.empty()) all.emplace_back(std::exchange(on, {}));
  };
  for (const char typed : bytes) {
    if (escaped_) {
      escaped_ = false;
      if (const auto wish = wish_of(typed)) {
        flush();
        all.emplace_back(*wish);
        at_line_begin_ = true;
        continue;
      }
      if (typed != *escape_) on += *escape_;
    } else if (at_line_begin_ && typed == escape_) {
      escaped_ = true;
      continue;
    }
    on += typed;
    at_line_begin_ = typed == '\r' || typed == '\n';
  }
  flush();
  return all;
}

std::optional<Escapes> escapes_of(const std::string& text) {
  if (text == "none") return Escapes(std::nullopt);
  if (text.size() == 1) return Escapes(text[0]);
  if (text.size() != 2 || text[0] != '^') return std::nullopt;
  const int letter = std::toupper(static_cast<unsigned char>(text[1]));
  if (letter < '@' || letter > '_') return std::nullopt;
  return Escapes(static_cast<char>(letter & 0x1f));
}

std::string escapes_help(const std::string& escape_char) {
  const std::string& e = escape_char;
  return "at the beginning of a line, " + e + ". leaves and lets it go on, " + e +
         "^Z stops sandfleet, " + e + e + " types " + e + ", " + e + "? shows this";
}

}  // namespace cli
