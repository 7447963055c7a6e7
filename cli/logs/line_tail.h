#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cli {

// Finds where the last lines of a text begin, from blocks of it that are looked at from its end. A
// newline that ends the text ends its last line. Pure.
class LineTail {
 public:
  LineTail(std::int64_t end, std::int64_t lines) : end_(end), at_(end), left_(lines) {
    if (lines == 0 || end == 0) found_ = end;
  }

  std::int64_t at() const { return at_; }  // The next block ends there.
  const std::optional<std::int64_t>& found() const { return found_; }
  void look(std::string_view block);

 private:
  std::int64_t end_, at_, left_;
  std::optional<std::int64_t> found_;
};

}  // namespace cli
