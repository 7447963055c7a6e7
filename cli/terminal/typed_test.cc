#include "cli/terminal/typed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Typed> typed(std::string text) { return {Typed(std::move(text))}; }

TEST(Escapes, AreWishesAtTheBeginningOfALineAlone) {
  const struct {
    const char* name;
    std::string_view bytes;
    std::vector<Typed> read;
  } cases[] = {
      {"text goes on", "ls -l\r", typed("ls -l\r")},
      {"leaving", "~.", {Wish::kLeave}},
      {"stopping", "~\x1a", {Wish::kStop}},
      {"asking", "~?", {Wish::kHelp}},
      {"behind a line", "ls\r~.", {"ls\r", Wish::kLeave}},
      {"behind a newline", "ls\n~?ls\r", {"ls\n", Wish::kHelp, "ls\r"}},
      {"one after the other", "~?~.", {Wish::kHelp, Wish::kLeave}},
      {"within a line", "cd ~.\r", typed("cd ~.\r")},
      {"twice is itself", "~~.\r", typed("~.\r")},
      {"twice, and no wish behind", "~~~.\r", typed("~~.\r")},
      {"another letter", "~/bin\r", typed("~/bin\r")},
      {"a line behind it", "~\r~.", {"~\r", Wish::kLeave}},
  };
  for (const auto& test : cases) {
    Escapes whole('~'), single('~');
    EXPECT_EQ(whole.read(test.bytes), test.read) << test.name;
    // The same byte for byte, where texts come in pieces.
    std::vector<Typed> all;
    for (const char byte : test.bytes)
      for (Typed& each : single.read({&byte, 1})) {
        auto* text = std::get_if<std::string>(&each);
        auto* before = all.empty() ? nullptr : std::get_if<std::string>(&all.back());
        if (text && before)
          *before += *text;
        else
          all.push_back(std::move(each));
      }
    EXPECT_EQ(all, test.read) << test.name << ", byte for byte";
  }
}

TEST(Escapes, AreHeldBackUntilItIsSeenWhatFollows) {
  Escapes escapes('~');
  EXPECT_THAT(escapes.read("~"), IsEmpty());
  EXPECT_EQ(escapes.read("x"), typed("~x"));
}

TEST(Escapes, BeginWithTheCharacterThatIsNamed) {
  EXPECT_THAT(escapes_of("^]")->read("\x1d."), ElementsAre(Typed(Wish::kLeave)));
  EXPECT_THAT(escapes_of("^b")->read("\x02."), ElementsAre(Typed(Wish::kLeave)));
  EXPECT_THAT(escapes_of("%")->read("~.%."), ElementsAre(Typed("~.%.")));
  EXPECT_EQ(escapes_of("none")->read("~."), typed("~."));
  for (const char* bad : {"", "ab", "^1", "^^^"}) EXPECT_FALSE(escapes_of(bad)) << bad;
}

}  // namespace
}  // namespace cli
