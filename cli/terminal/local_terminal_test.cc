#include "cli/terminal/local_terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/testing/own_terminal.h"

namespace cli {
namespace {

TEST(LocalTerminal, IsAsItWasAfterWhoeverTookIt) {
  const OwnTerminal here(24, 80);
  {
    LocalTerminal terminal(here.descriptor());
    EXPECT_TRUE(terminal.is_one());
    EXPECT_FALSE(terminal.taken());
    EXPECT_TRUE(terminal.take());
    EXPECT_TRUE(here.is_raw());
  }
  EXPECT_TRUE(here.is_as_before());
}

TEST(LocalTerminal, IsTakenOnce) {
  const OwnTerminal here(24, 80);
  LocalTerminal terminal(here.descriptor());
  EXPECT_TRUE(terminal.take());
  EXPECT_FALSE(terminal.take()) << "it is ours";
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before()) << "and not as we had made it";
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before());
}

// A shell, say, between ^Z and fg, or after SIGSTOP.
TEST(LocalTerminal, IsGivenBackAsOthersHadItLast) {
  const OwnTerminal here(24, 80);
  LocalTerminal terminal(here.descriptor());
  EXPECT_TRUE(terminal.take());
  terminal.give_back();
  here.set_erase('h');
  EXPECT_TRUE(terminal.take());
  EXPECT_TRUE(here.is_raw());
  terminal.give_back();
  EXPECT_EQ(here.erase(), 'h');

  EXPECT_TRUE(terminal.take());
  here.restore();
  EXPECT_TRUE(terminal.take()) << "others have had it, and nobody told";
  EXPECT_TRUE(here.is_raw());
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before());
}

TEST(LocalTerminal, IsNoneWhereThereIsNone) {
  LocalTerminal terminal(-1);
  EXPECT_FALSE(terminal.is_one());
  EXPECT_FALSE(terminal.take());
  terminal.give_back();
  EXPECT_EQ(terminal.size(), (wire::TerminalSize{}));
}

}  // namespace
}  // namespace cli
