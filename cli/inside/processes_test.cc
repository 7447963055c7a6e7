#include "cli/inside/processes.h"

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
  const std::string text = to_text(process_table({process}, {}));
  EXPECT_THAT(text, HasSubstr("0123456789abcdef   12"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("xxx..."));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(ProcessTable, TellsTerminalsApartAndWhatStays) {
  const auto now = base::SystemClock().wall();
  wire::ListedProcess shell{.handle = "0123456789abcdef", .argv = {"bash"}, .state = {.pid = 12}};
  shell.state.terminal = wire::TerminalSize{40, 160};
  shell.state.age_ms = 7'200'000;
  shell.state.detached = true;
  EXPECT_THAT(to_text(process_table({shell}, now)),
              HasSubstr("12    Running   2h    160x40     yes        bash\n"));
  EXPECT_THAT(to_text(process_table({{.handle = "0123456789abcdef", .argv = {"make"}}}, now)),
              HasSubstr("-     NotStarted   -     -          -          make\n"));
}

}  // namespace
}  // namespace cli
