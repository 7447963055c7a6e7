#include "executor/subprocess/environment.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

// covers: 4.3
TEST(Environment, WithholdsWhatLooksLikeASecret) {
  for (const char* name :
       {"API_KEY", "MONKEY", "db_password", "Secret", "GH_TOKEN", "tokenizer", "DSH_HOME", "DSH_"})
    EXPECT_TRUE(is_withheld(name)) << name;
  for (const char* name : {"PATH", "HOME", "LANG", "dsh_home", "MY_DSH_HOME", "PASSWD"})
    EXPECT_FALSE(is_withheld(name)) << name;
}

// covers: 4.3
TEST(Environment, IsTheUsersWithTheChangesOfTheCaller) {
  const Environment of_user = {{"PATH", "/bin"},
                               {"LANG", "C"},
                               {"API_KEY", "secret"},
                               {"DSH_HOME", "/h"},
                               {"PAGER", "less"}};
  const EnvironmentChanges changes = {{"PAGER", "cat"},
                                      {"LANG", std::nullopt},
                                      {"ABSENT", std::nullopt},
                                      {"API_KEY", "asked for"},
                                      {"DSH_NEW", ""},
                                      {"TWICE", "1"},
                                      {"TWICE", "2"}};
  const Environment expected = {{"PATH", "/bin"},
                                {"PAGER", "cat"},
                                {"API_KEY", "asked for"},
                                {"DSH_NEW", ""},
                                {"TWICE", "2"}};
  EXPECT_EQ(environment_for(of_user, changes), expected);
}

TEST(Environment, OfATerminalNamesItAndTheShellThatNothingElseNames) {
  EXPECT_EQ(with_terminal({{"TERM", "dumb"}}, "/bin/zsh"),
            (Environment{{"TERM", "xterm-256color"}, {"SHELL", "/bin/zsh"}}));
  EXPECT_EQ(with_terminal({{"SHELL", "/bin/fish"}}, "/bin/zsh")["SHELL"], "/bin/fish");
  EXPECT_FALSE(with_terminal({}, "").contains("SHELL"));
}

// covers: 4.3
TEST(Environment, IsReadAsAProcessHasIt) {
  const char* const entries[] = {"A=1", "B=x=y", "=hidden", "nothing", "A=2", "C=", nullptr};
  EXPECT_EQ(read_environment(entries), (Environment{{"A", "1"}, {"B", "x=y"}, {"C", ""}}));
  EXPECT_TRUE(read_environment(nullptr).empty());
}

}  // namespace
}  // namespace executor
