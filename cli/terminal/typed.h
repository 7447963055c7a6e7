#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What a person types at a terminal elsewhere, and what of it is meant for this program. Pure.
namespace cli {

enum class Wish {
  kLeave,  // What runs goes on without us.
  kStop,   // This program is to stop, as by ^Z at home.
  kHelp,
};

// Bytes that go on, or a wish, in the order in which they were typed.
using Typed = std::variant<std::string, Wish>;

// As ssh(1) has it: behind the beginning of a line, the escape character and `.`, `^Z` or `?` is a
// wish; the escape character twice is itself once; anything else goes on as it is.
class Escapes {
 public:
  explicit Escapes(std::optional<char> escape) : escape_(escape) {}

  std::vector<Typed> read(std::string_view bytes);

 private:
  std::optional<char> escape_;
  bool at_line_begin_ = true;
  bool escaped_ = false;  // Held back until it is seen what follows.
};

// The character that `--escape-char` names: one character, "^X", or "none". Nothing: it is none of
// these.
std::optional<Escapes> escapes_of(const std::string& text);
// What the wishes are, for who asks.
std::string escapes_help(const std::string& escape_char);

}  // namespace cli
