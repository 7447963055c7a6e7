#include "cli/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProcessTable, TellsWhatBecameOfEach) {
  const auto row = [](wire::ProcessState state) { return state_word(state); };
  EXPECT_EQ(row({}), "NotStarted");
  EXPECT_EQ(row({.pid = 7}), "Running");
  EXPECT_EQ(row({.pid = 7, .exited = true, .exit_code = 3, .empty = true}), "Exited(3)");
  EXPECT_EQ(row({.pid = 7, .exited = true, .exit_code = 0}), "Exited(0), some left");
  EXPECT_EQ(row({.pid = 7, .exited = true, .signal = "SIGTERM", .empty = true}), "Killed(SIGTERM)");
}

TEST(ProcessTable, ShowsAStrangersWordsInOneShortCell) {
  const wire::ListedProcess process{.handle = "0123456789abcdef",
                                    .argv = {"sh", "-c", "\x1b[2J\n" + std::string(200, 'x')},
                                    .state = {.pid = 12}};
  const std::string text = to_text(process_table({process}));
  EXPECT_THAT(text, HasSubstr("0123456789abcdef   12"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("xxx..."));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

}  // namespace
}  // namespace cli
