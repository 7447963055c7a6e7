#include "libs/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace base {
namespace {

TEST(Utf8, EndsAtTheFirstByteThatIsNone) {
  using namespace std::string_view_literals;
  const struct {
    std::string_view text;
    std::size_t bytes;
    bool broken;
  } kCases[] = {
      {"", 0, false},
      {"plain", 5, false},
      {"a\0b"sv, 3, false},
      {"h\xc3\xa9", 3, false},
      {"\xe2\x82\xac", 3, false},
      {"\xf0\x9f\x98\x80", 4, false},
      {"\xf4\x8f\xbf\xbf", 4, false},          // U+10FFFF.
      {"\xed\x9f\xbf\xee\x80\x80", 6, false},  // Either side of the surrogates.
      {"a\xc3", 1, false},                     // The beginning of one.
      {"a\xf0\x9f\x98", 1, false},
      {"\xf0\x9f\x98\x80\xf0", 4, false},
      {"a\x80", 1, true},
      {"\xc0\xaf", 0, true},  // Overlong.
      {"\xc1\xbf", 0, true},
      {"\xe0\x80\xaf", 0, true},
      {"\xf0\x8f\xbf\xbf", 0, true},
      {"\xed\xa0\x80", 0, true},      // A surrogate.
      {"\xf4\x90\x80\x80", 0, true},  // Above U+10FFFF.
      {"\xf5\x80\x80\x80", 0, true},
      {"ab\xff", 2, true},
      {"ab\xc3(", 2, true},
      {"\xe2\x82(", 0, true},
      {"0123456789\xff", 10, true},  // Behind a run of plain ones.
  };
  for (const auto& one : kCases) {
    const Utf8Prefix prefix = utf8_prefix(one.text);
    EXPECT_EQ(prefix.bytes, one.bytes) << one.text;
    EXPECT_EQ(prefix.broken, one.broken) << one.text;
    EXPECT_EQ(is_utf8(one.text), one.bytes == one.text.size()) << one.text;
  }
}

TEST(Utf8, IsKnown) {
  const struct {
    const char* name;
    std::string_view text;
    bool is_utf8;
  } cases[] = {
      {"nothing", "", true},
      {"ascii", "a~\x7f", true},
      {"two_bytes", "\xc2\x80\xdf\xbf", true},
      {"three_bytes", "\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf", true},
      {"four_bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
      {"latin_1", "caf\xe9", false},
      {"a_rest_alone", "\x80", false},
      {"cut_short", "\xe2\x82", false},
      {"a_rest_that_is_none", "\xe2\x82z", false},
      {"longer_than_needed", "\xc0\xaf", false},
      {"longer_than_needed_by_one", "\xe0\x9f\xbf", false},
      {"four_for_three", "\xf0\x8f\xbf\xbf", false},
      {"a_surrogate", "\xed\xa0\x80", false},
      {"beyond_unicode", "\xf4\x90\x80\x80", false},
      {"never_used", "\xff", false},
  };
  for (const auto& test : cases) EXPECT_EQ(is_utf8(test.text), test.is_utf8) << test.name;
}

}  // namespace
}  // namespace base
