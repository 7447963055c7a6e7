#include "executor/process/reaper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "executor/process/spawn.h"
#include "libs/base/kernel_files.h"
#include "libs/base/reading.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

class Reaper : public testing::Test {
 protected:
  void begin(const std::string& script) {
    const char* path = std::getenv("PATH");
    auto launched = launch({.argv = {"sh", "-c", script},
                            .env = {{"PATH", path ? path : "/usr/bin:/bin"}},
                            .cwd = "/",
                            .user = {},
                            .keep_stdin = false,
                            .under_reaper = true});
    ASSERT_TRUE(launched) << launched.error().message;
    launched_ = *std::move(launched);
  }
  ~Reaper() override {
    launched_.reaper.reset();
    if (launched_.pid > 0) ::waitpid(launched_.pid, nullptr, 0);
  }
  ReaperWord hear() {
    ReaperWord word{};
    if (::recv(launched_.reaper.get(), &word, sizeof word, 0) != sizeof word) return {};
    return word;
  }
  std::string line() { return base::read_line(launched_.stdout_end.get(), 100, base::Seconds(20)); }
  pid_t pid_on_a_line() { return static_cast<pid_t>(base::parse_integer(line()).value_or(0)); }

  Launched launched_;
};

TEST_F(Reaper, TellsWhoBeganHowItEndedAndThatNobodyIsLeft) {
  begin("echo $$; exit 7");
  const ReaperWord begun = hear();
  EXPECT_EQ(begun.kind, ReaperWord::kBegun);
  EXPECT_EQ(begun.value, pid_on_a_line());
  EXPECT_NE(begun.value, launched_.pid);
  const ReaperWord ended = hear();
  EXPECT_EQ(ended.kind, ReaperWord::kEnded);
  EXPECT_EQ(WEXITSTATUS(ended.value), 7);
  EXPECT_EQ(hear().kind, ReaperWord::kEmpty);
}

TEST_F(Reaper, InheritsWhoLosesItsParent) {
  begin("setsid sh -c 'echo $$; exec sleep 1000' & exit 0");
  const pid_t left = pid_on_a_line();
  EXPECT_EQ(hear().kind, ReaperWord::kBegun);
  EXPECT_EQ(hear().kind, ReaperWord::kEnded);
  const auto facts = base::look_at_process(left);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->parent, launched_.pid);
  ASSERT_EQ(::send(launched_.reaper.get(), &kKillTree, 1, 0), 1);
  EXPECT_EQ(hear().kind, ReaperWord::kEmpty);
  EXPECT_FALSE(base::runs(left));
}

TEST_F(Reaper, IsHeardToTheEndAlsoWhenItIsToldToKillAsTheLastOneEnds) {
  begin("echo $$; exec sleep 1000");
  const pid_t command = pid_on_a_line();
  EXPECT_EQ(hear().kind, ReaperWord::kBegun);
  ::kill(launched_.pid, SIGSTOP);
  ASSERT_EQ(::waitpid(launched_.pid, nullptr, WUNTRACED), launched_.pid);
  ::kill(command, SIGKILL);
  EXPECT_TRUE(base::eventually([&] { return !base::runs(command); }));
  // It reads the first before it sees that nobody is left.
  for (int time = 0; time < 2; ++time)
    ASSERT_EQ(::send(launched_.reaper.get(), &kKillTree, 1, 0), 1);
  ::kill(launched_.pid, SIGCONT);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(launched_.pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(hear().kind, ReaperWord::kEnded);
  EXPECT_EQ(hear().kind, ReaperWord::kEmpty);
}

TEST_F(Reaper, KillsTheTreeWhenItsSocketEnds) {
  begin("trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait");
  const pid_t inner = pid_on_a_line();
  ASSERT_GT(inner, 1);
  launched_.reaper.reset();
  EXPECT_TRUE(base::eventually([&] { return !base::runs(inner); }));
}

TEST_F(Reaper, HoldsNothingOpen) {
  begin("echo end; exec >&- 2>&-; sleep 1000");
  EXPECT_EQ(line(), "end");
  EXPECT_EQ(line(), "") << "the end, while it and its command live";
  EXPECT_TRUE(base::runs(launched_.pid));
}

TEST_F(Reaper, MindsNoSignalOfTheUsers) {
  begin("echo $$; sleep 1000");
  const pid_t command = pid_on_a_line();
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE})
    ::kill(launched_.pid, number);
  EXPECT_EQ(hear().kind, ReaperWord::kBegun);
  ::kill(command, SIGTERM);
  EXPECT_EQ(WTERMSIG(hear().value), SIGTERM);
}

}  // namespace
}  // namespace executor
