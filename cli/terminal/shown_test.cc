#include "cli/terminal/shown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

std::string byte_for_byte(std::string_view bytes, bool again) {
  Shown shown;
  std::string all;
  for (const char byte : bytes) all += shown.pass({&byte, 1}, again);
  return all;
}

TEST(Shown, AsksNoTerminalAgainWhatAnotherHasAnswered) {
  for (const std::string_view question : {"\x1b[c",
                                          "\x1b[0c",
                                          "\x1b[>c",
                                          "\x1b[=c",
                                          "\x1b[5n",
                                          "\x1b[6n",
                                          "\x1b[?6n",
                                          "\x1b[>q",
                                          "\x1b[>0q",
                                          "\x1b[?u",
                                          "\x1b[?4m",
                                          "\x1b[x",
                                          "\x1b[14t",
                                          "\x1b[18t",
                                          "\x1b[21t",
                                          "\x1b[?2026$p",
                                          "\x1b[1$w",
                                          "\x1b[1;1;1;24;80*y",
                                          "\x1bZ",
                                          "\x1b]10;?\x1b\\",
                                          "\x1b]11;?\a",
                                          "\x1b]4;1;?\a",
                                          "\x1b]52;c;?\a",
                                          "\x1bP$qm\x1b\\",
                                          "\x1bP+q544e\x1b\\",
                                          "\x05"}) {
    const std::string bytes = "before" + std::string(question) + "behind";
    EXPECT_EQ(Shown().pass(bytes, true), "beforebehind") << testing::PrintToString(question);
    EXPECT_EQ(byte_for_byte(bytes, true), "beforebehind") << testing::PrintToString(question);
    EXPECT_EQ(byte_for_byte(bytes, false), bytes) << "what is new is passed on as it comes";
  }
}

TEST(Shown, ShowsAllElseAgain) {
  for (const std::string_view bytes : {"plain\r\n\ttext\a\b",
                                       "\x1b[31mred\x1b[m",
                                       "\x1b[2J\x1b[H",
                                       "\x1b[?1049h",
                                       "\x1b[>4;2m",
                                       "\x1b[>4n",
                                       "\x1b[2 q",
                                       "\x1b[22;0t",
                                       "\x1b[3;10r",
                                       "\x1b[u",
                                       "\x1b[>1u",
                                       "\x1b]0;title\a",
                                       "\x1b]52;c;YQ==\x1b\\",
                                       "\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\",
                                       "\x1bPq#0;2\x1b\\",
                                       "\x1b(0lqk\x1b(B",
                                       "\x1b=\x1b>",
                                       "\x1b"
                                       "7\x1b"
                                       "8",
                                       "gr\xc3\xbc\xc3\x9f",
                                       "\x1b[\x18kept",
                                       "\x1b\x1b[A",
                                       "\x1b[1\x1b[2J"}) {
    EXPECT_EQ(Shown().pass(bytes, true), bytes) << testing::PrintToString(bytes);
    EXPECT_EQ(byte_for_byte(bytes, true), bytes) << testing::PrintToString(bytes);
  }
}

TEST(Shown, HoldsNoMoreOfASequenceThanMatters) {
  const std::string picture = "\x1bPq" + std::string(10 * Shown::kHeldBytesMax, 'p');
  Shown shown;
  const std::string first = shown.pass(picture, true);
  EXPECT_EQ(first, picture) << "it is too long to be held back";
  EXPECT_EQ(shown.pass("\x1b\\\x1b[6nend", true), "\x1b\\end") << "and it has an end";
  EXPECT_EQ(shown.pass("\x1b]0;begun", true), "");
  EXPECT_EQ(shown.pass(" and ended\a", false), "\x1b]0;begun and ended\a");
}

TEST(Shown, KnowsHowTheTerminalIsLeftAndEnteredAgain) {
  const struct {
    std::string_view name, bytes, leave, enter;
  } cases[] = {
      {"nothing", "text\r\n\x1b[H\x1b[2J", "", ""},
      {"full screen without cursor", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l",
       "\x1b[?1049h\x1b[?25l"},
      {"and back", "\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l", "", ""},
      {"several at once", "\x1b[?1002;1006h", "\x1b[?1002l\x1b[?1006l", "\x1b[?1006h\x1b[?1002h"},
      {"modes that matter to nobody later", "\x1b[?12h\x1b[4h", "", ""},
      {"keypad", "\x1b=", "\x1b>", "\x1b="},
      {"modified keys", "\x1b[>4;2m", "\x1b[>4m", "\x1b[>4;2m"},
      {"modified keys and back", "\x1b[>4;2m\x1b[>4;m", "", ""},
      {"flags of the keyboard", "\x1b[>1u\x1b[>5u\x1b[<u", "\x1b[<1u", ""},
      {"margins", "\x1b[2;20r",
       "\x1b"
       "7\x1b[r\x1b"
       "8",
       "\x1b"
       "7\x1b[2;20r\x1b"
       "8"},
      {"margins and back", "\x1b[2;20r\x1b[r", "", ""},
      {"colours", "\x1b[1;31mred", "\x1b[m", ""},
      {"all reset",
       "\x1b[?1049h\x1b[31m\x1b"
       "c",
       "", ""},
  };
  for (const auto& test : cases) {
    for (const bool again : {true, false}) {
      Shown shown;
      EXPECT_EQ(shown.pass(test.bytes, again), test.bytes) << test.name;
      EXPECT_EQ(shown.leave_modes(), test.leave) << test.name;
      EXPECT_EQ(shown.enter_modes(), test.enter) << test.name;
    }
  }
}

}  // namespace
}  // namespace cli
