#include "executor/filesystem/text.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

using namespace std::string_literals;

constexpr std::size_t kRoomy = 1u << 20;

struct Case {
  const char* name;
  std::string stored;
  TextEdit edit;
  std::string wanted;  // What is stored then, or the code.
};

std::string outcome(const Case& one) {
  const auto edited = edit_text(one.stored, one.edit, kRoomy);
  return edited ? edited->stored : std::string(to_word(edited.error().fs));
}

std::string lines(std::size_t count, const std::string& newline) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "x" + newline;
  return text;
}

// covers: D1 D2 D3 R2 R3 2.4 8
TEST(Edit, ChangesWhatItFinds) {
  const std::string euro = "\xe2\x82\xac";
  const std::string astral = "\xf0\x9f\x98\x80";
  const Case kCases[] = {
      {"one match", "a b c", {"b", "B"}, "a B c"},
      {"all matches", "b b b", {"b", "B", true}, "B B B"},
      {"matches do not overlap", "aaaa", {"aa", "b", true}, "bb"},
      {"to nothing", "a b", {" b", ""}, "a"},
      {"beyond ASCII", "a" + euro, {euro, astral}, "a" + astral},
      {"no match", "a", {"b", "c"}, "FS_EDIT_NOT_FOUND"},
      {"empty old string", "a", {"", "c", true}, "FS_EDIT_NOT_FOUND"},
      {"empty file", "", {"a", "c"}, "FS_EDIT_NOT_FOUND"},
      {"ambiguous", "b b", {"b", "c"}, "FS_AMBIGUOUS_EDIT"},
      {"overlapping matches are one", "aaa", {"aa", "b"}, "ba"},
      {"a zero byte far behind", std::string(20'000, 'a') + "\0b"s, {"b", "c"}, "FS_NOT_TEXT"},
      {"not UTF-8", "b\xff", {"b", "c"}, "FS_NOT_TEXT"},
      {"half a character", "b\xe2\x82", {"b", "c"}, "FS_NOT_TEXT"},
      {"text is judged before matches", "\xff", {"", ""}, "FS_NOT_TEXT"},
      // The new string is taken as it is written.
      {"no pattern, once", "x", {"x", "$& $$ $' $` $1 \\0"}, "$& $$ $' $` $1 \\0"},
      {"no pattern, all", "x.x", {"x", "$&$$", true}, "$&$$.$&$$"},
      {"no pattern in the old one", "a.b", {".", "-"}, "a-b"},
      // Newlines.
      {"CRLF is kept", "a\r\nb\r\n", {"b", "c"}, "a\r\nc\r\n"},
      {"LF in the asked matches CRLF", "a\r\nb\r\n", {"a\nb", "c\nd"}, "c\r\nd\r\n"},
      {"CRLF in the asked matches LF", "a\nb\n", {"a\r\nb", "c\r\nd"}, "c\nd\n"},
      {"a lone CR stays", "a\rb\nc\n", {"c", "d"}, "a\rb\nd\n"},
      {"a lone CR stays in CRLF", "a\rb\r\nc\r\n", {"c", "d"}, "a\rb\r\nd\r\n"},
      {"as many of both become LF", "a\r\nb\nc", {"c", "d"}, "a\nb\nd"},
      {"more CRLF than LF", "a\r\nb\nc\r\n", {"c", "d"}, "a\r\nb\r\nd\r\n"},
      {"only the beginning counts",
       lines(2048, "\n") + lines(9000, "\r\n") + "b",
       {"b", "c"},
       lines(2048, "\n") + lines(9000, "\n") + "c"},
      {"a CRLF across its end does not count",
       std::string(4095, 'x') + "\r\nb",
       {"b", "c"},
       std::string(4095, 'x') + "\nc"},
      {"a CRLF that just fits",
       std::string(4094, 'x') + "\r\nb",
       {"b", "c"},
       std::string(4094, 'x') + "\r\nc"},
      {"two units beyond U+FFFF",
       [&] {
         std::string text;
         for (int i = 0; i < 2048; ++i) text += astral;
         return text + "\r\nb";
       }(),
       {"b", "c"},
       [&] {
         std::string text;
         for (int i = 0; i < 2048; ++i) text += astral;
         return text + "\nc";
       }()},
      // The byte order mark stays on disk and out of sight.
      {"a mark is kept",
       "\xEF\xBB\xBF"
       "ab",
       {"a", "c"},
       "\xEF\xBB\xBF"
       "cb"},
      {"a mark cannot be edited",
       "\xEF\xBB\xBF"
       "ab",
       {"\xEF\xBB\xBF", ""},
       "FS_EDIT_NOT_FOUND"},
      {"only the first is one", "\xEF\xBB\xBF\xEF\xBB\xBF", {"\xEF\xBB\xBF", ""}, "\xEF\xBB\xBF"},
  };
  for (const Case& one : kCases) EXPECT_EQ(outcome(one), one.wanted) << one.name;
}

// covers: A6 R3
TEST(Edit, ShowsBothSidesWithPlainNewlinesAndWithoutTheMark) {
  const auto edited = edit_text(
      "\xEF\xBB\xBF"
      "a\r\nb\r\n",
      {"b", "x\r\ny"}, kRoomy);
  ASSERT_TRUE(edited.ok());
  EXPECT_EQ(edited->before, "a\nb\n");
  EXPECT_EQ(edited->after, "a\nx\ny\n");
  EXPECT_EQ(edited->stored,
            "\xEF\xBB\xBF"
            "a\r\nx\r\ny\r\n");
  EXPECT_EQ(edited->replacements, 1u);
}

TEST(Edit, DoesNotGrowPastItsBound) {
  const std::string many(1000, 'a');
  const TextEdit tenfold{"a", "0123456789", true};
  EXPECT_TRUE(edit_text(many, tenfold, 10'000).ok());
  EXPECT_EQ(edit_text(many, tenfold, 9'999).error().fs, FsCode::kTooLarge);
  EXPECT_TRUE(edit_text(many + "b", {"b", ""}, 1000).ok());
  EXPECT_EQ(edit_text(many + "bc", {"b", ""}, 1000).error().fs, FsCode::kTooLarge);
}

// covers: A6
TEST(DiffSide, IsTextBelowTheBoundOnBothSides) {
  const struct {
    const char* name;
    std::string stored;
    std::size_t other;
    std::size_t max;
    std::optional<std::string> wanted;
  } kCases[] = {
      {"text", "a\r\nb\rc", 1, 100, "a\nb\rc"},
      {"empty", "", 0, 100, ""},
      {"a mark",
       "\xEF\xBB\xBF"
       "a",
       1, 100, "a"},
      {"zero byte", "a\0"s, 1, 100, std::nullopt},
      {"zero byte behind the sample", std::string(8192, 'a') + "\0"s, 1, 10'000,
       std::string(8192, 'a') + "\0"s},
      {"not UTF-8", "\xff", 1, 100, std::nullopt},
      {"one below", "1234", 4, 5, "1234"},
      {"at the bound", "12345", 4, 5, std::nullopt},
      {"the other at the bound", "1234", 5, 5, std::nullopt},
      {"nothing wanted", "", 0, 0, std::nullopt},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(diff_side(one.stored, one.other, one.max), one.wanted) << one.name;
}

TEST(FsCode, HasThirteenWords) {
  std::string words;
  for (int code = 0; code <= static_cast<int>(FsCode::kAborted); ++code)
    words += std::string(to_word(static_cast<FsCode>(code))) + " ";
  EXPECT_EQ(words,
            "FS_NOT_FOUND FS_NOT_DIRECTORY FS_NOT_TEXT FS_NOT_REGULAR_FILE FS_TOO_LARGE "
            "FS_PERMISSION_DENIED FS_SANDBOX_DENIED FS_IO_ERROR FS_STALE_VERSION FS_NOT_OBSERVED "
            "FS_AMBIGUOUS_EDIT FS_EDIT_NOT_FOUND FS_ABORTED ");
}

}  // namespace
}  // namespace executor
