#include "executor/terminal/foreground.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "executor/process/spawn.h"
#include "executor/terminal/ends.h"
#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

// A program in a terminal of its own.
class Playing {
 public:
  explicit Playing(std::vector<std::string> argv) {
    Launch launch;
    launch.argv = std::move(argv);
    launch.cwd = "/";
    launch.like_a_shell = false;
    launch.terminal = TerminalSize{};
    const char* path = std::getenv("PATH");
    launch.env["PATH"] = path ? path : "/usr/bin:/bin";
    auto launched = executor::launch(launch);
    EXPECT_TRUE(launched) << (launched ? "" : launched.error().message);
    if (!launched) return;
    pid = launched->pid;
    auto held = hold_terminal(*launched, true);
    EXPECT_TRUE(held);
    if (!held) return;
    terminal = *held;
    shown_ = std::move(launched->stdout_end);
  }
  ~Playing() {
    if (pid <= 0) return;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Playing(const Playing&) = delete;
  Playing& operator=(const Playing&) = delete;

  // Until it has shown `text`; else the test fails.
  void until_shown(std::string_view text) {
    char byte = 0;
    for (std::string all; all.find(text) == std::string::npos; all += byte)
      if (::read(shown_.get(), &byte, 1) != 1) {
        ADD_FAILURE() << "it ended after '" << all << "'";
        return;
      }
  }
  void type(std::string_view text) const {
    EXPECT_TRUE(base::write_all(terminal->master.get(), text));
  }
  void until_in_state(char state) const {
    EXPECT_TRUE(base::eventually([&] {
      const auto facts = base::look_at_process(pid);
      return facts && facts->state == state;
    })) << state;
  }
  std::optional<InputWaiting> waiting() const {
    const auto found = look_at_foreground(*terminal);
    return found ? std::optional(found->waiting) : std::nullopt;
  }

  pid_t pid = 0;
  std::shared_ptr<const Terminal> terminal;

 private:
  base::Fd shown_;
};

struct Way {
  const char* name;
  InputWaiting expected;
  bool typed_at = false;  // A line comes before it is looked at.
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

constexpr auto kYes = InputWaiting::kYes;
constexpr auto kNo = InputWaiting::kNo;
constexpr auto kUnknown = InputWaiting::kUnknown;
const Way kWays[] = {
    {"read", kYes},
    {"readv", kYes},
    {"preadv2", kYes},
    {"splice", kYes},
    {"poll", kYes},
    {"poll_for_a_time", kYes},
    {"ppoll", kYes},
    {"select", kYes},
    {"select_high", kYes},
    {"pselect", kYes},
    {"epoll", kYes},
    {"epoll_in_epoll", kYes},
    {"poll_epoll", kYes},
    {"epoll_of_tty", kYes},
    {"epoll_of_copy", kYes},
    {"read_of_tty", kYes},
    {"read_reopened", kYes},
    {"thread", kYes},
    {"child", kYes},
    {"sleep", kNo},
    {"pipe", kNo},
    {"poll_for_the_end", kNo},
    {"poll_pause", kNo},
    {"select_for_errors", kNo},
    {"epoll_for_the_end", kNo},
    {"epoll_of_nothing", kNo},
    {"disarmed", kNo, true},
    {"edge", kNo, true},  // It waits on, but there is input.
    {"epoll_of_moved_pipe", kUnknown},
};

class EachWay : public ::testing::TestWithParam<Way> {};

// covers: Y3
TEST_P(EachWay, OfWaitingIsToldExactly) {
  const Way& way = GetParam();
  Playing program({WAITS, way.name});
  ASSERT_TRUE(program.terminal);
  program.until_shown("ready");
  if (way.typed_at) {
    program.until_in_state('S');
    program.type("a line\n");
    program.until_shown("ready");
  }
  program.until_in_state('S');
  const auto found = look_at_foreground(*program.terminal);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->group, program.pid);
  // Another of its threads or children may be on its way yet.
  EXPECT_TRUE(base::eventually([&] { return program.waiting() == way.expected; }))
      << static_cast<int>(found->waiting);
  EXPECT_EQ(program.waiting(), way.expected) << "and it stays so";
}
INSTANTIATE_TEST_SUITE_P(Foreground, EachWay, ::testing::ValuesIn(kWays),
                         [](const auto& one) { return std::string(one.param.name); });

// covers: Y3
TEST(Foreground, WhoIsStoppedDoesNotWaitAndWaitsAgainWhenItGoesOn) {
  for (const auto& [way, expected] :
       {std::pair("read", kYes), std::pair("poll_for_a_time", kYes), std::pair("sleep", kNo)}) {
    SCOPED_TRACE(way);
    Playing program({WAITS, way});
    ASSERT_TRUE(program.terminal);
    program.until_shown("ready");
    program.until_in_state('S');
    ::kill(program.pid, SIGSTOP);
    program.until_in_state('T');
    EXPECT_EQ(program.waiting(), kNo);
    ::kill(program.pid, SIGCONT);
    program.until_in_state('S');
    EXPECT_TRUE(
        base::eventually([&, expected = expected] { return program.waiting() == expected; }));
  }
}

// covers: Y3
TEST(Foreground, WithARingOfRequestsCannotBeKnown) {
  Playing program({WAITS, "ring"});
  ASSERT_TRUE(program.terminal);
  char first = 0;
  ASSERT_EQ(::read(program.terminal->master.get(), &first, 1), 1);
  if (first == 'n') GTEST_SKIP() << "the kernel makes no ring";
  program.until_in_state('S');
  EXPECT_EQ(program.waiting(), kUnknown);
}

// covers: Y3
TEST(Foreground, WaitsOnWhereHalfALineWasTyped) {
  Playing reader({WAITS, "read"});
  ASSERT_TRUE(reader.terminal);
  reader.until_shown("ready");
  reader.until_in_state('S');
  EXPECT_EQ(reader.waiting(), kYes);
  reader.type("half a line");
  EXPECT_EQ(reader.waiting(), kYes) << "which is nothing for who reads lines";
}

// covers: Y2
TEST(Foreground, GetsTheKeysSignalsFromTheTerminalItself) {
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP}) {
    Playing program({WAITS, "sleep"});
    ASSERT_TRUE(program.terminal);
    program.until_shown("ready");
    EXPECT_TRUE(is_sent_by_terminal(number));
    EXPECT_TRUE(send_by_terminal(program.terminal->master.get(), number));
    if (number == SIGTSTP) {
      // Its group is nobody's job: to stop it would leave it stopped for ever, so the kernel does
      // not.
      EXPECT_TRUE(base::runs(program.pid));
      continue;
    }
    int status = 0;
    ::waitpid(program.pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number);
    program.pid = 0;
  }
  for (const int number : {SIGTERM, SIGKILL, SIGHUP, SIGCONT, 0}) {
    EXPECT_FALSE(is_sent_by_terminal(number));
    Playing program({WAITS, "sleep"});
    ASSERT_TRUE(program.terminal);
    EXPECT_FALSE(send_by_terminal(program.terminal->master.get(), number));
  }
}

TEST(Foreground, IsNobodyOnceTheSessionIsOver) {
  Playing program({"true"});
  ASSERT_TRUE(program.terminal);
  ::waitpid(program.pid, nullptr, 0);
  program.pid = 0;
  EXPECT_FALSE(look_at_foreground(*program.terminal));
}

}  // namespace
}  // namespace executor
