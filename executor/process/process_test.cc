#include "executor/process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "executor/process/processes.h"
#include "executor/testing/scratch.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/cgroup.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

using std::chrono::milliseconds;

Launch shell(const std::string& script) {
  const char* path = ::getenv("PATH");
  return {.argv = {"sh", "-c", script},
          .env = {{"PATH", path ? path : "/usr/bin:/bin"}},
          .cwd = "/",
          .user = {},
          .keep_stdin = false};
}

struct Seen {
  std::string out, errors;
  std::optional<End> end;
  bool cut_off = false;
};

aio::Task<Seen> listen(std::shared_ptr<Fanout::Subscriber> subscriber,
                       milliseconds pause = milliseconds(0)) {
  Seen seen;
  while (auto event = co_await subscriber->next()) {
    if (pause.count() > 0) co_await aio::sleep_for(pause);
    if (const auto* output = std::get_if<Output>(&*event))
      (output->channel == Channel::kStderr ? seen.errors : seen.out) += output->bytes;
    if (const auto* end = std::get_if<End>(&*event)) seen.end = *end;
  }
  seen.cut_off = subscriber->cut_off();
  co_return seen;
}

aio::Task<int> run_all(aio::Loop& loop, Launch launch, std::vector<Seen>& seen) {
  Processes processes(loop.executor(), std::nullopt);
  const auto process = processes.start({}, std::move(launch), std::nullopt);
  if (!process) {
    ADD_FAILURE() << process.error().message;
    co_return 1;
  }
  seen.push_back(co_await listen(process->subscriber));
  co_return 0;
}

Seen run(Launch launch) {
  ::signal(SIGPIPE, SIG_IGN);
  aio::Loop loop;
  std::vector<Seen> seen;
  loop.run(run_all(loop, std::move(launch), seen));
  return seen.empty() ? Seen{} : seen[0];
}

TEST(Launch, BeginsInItsGroup) {
  const base::TemporaryCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  Launch launch = shell("grep ^0: /proc/self/cgroup");
  launch.group = cgroup.path() / "own";
  ASSERT_EQ(::mkdir(launch.group->c_str(), 0755), 0);
  EXPECT_EQ(run(launch).out, "0::/" + cgroup.path().filename().string() + "/own\n");
}

TEST(Launch, SaysWhenItsGroupIsGone) {
  Launch launch = shell("true");
  launch.group = "/sys/fs/cgroup/of-nobody";
  EXPECT_FALSE(executor::launch(launch).ok());
  const Scratch no_group;
  launch.group = no_group.path();
  EXPECT_FALSE(executor::launch(launch).ok()) << "neither born there nor moved";
}

TEST(Process, TellsOutputAndExitCode) {
  const Seen seen = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(seen.out, "out\n");
  EXPECT_EQ(seen.errors, "err\n");
  ASSERT_TRUE(seen.end);
  EXPECT_EQ(seen.end->exit_code, 3);
  EXPECT_TRUE(seen.end->exited);
  EXPECT_EQ(seen.end->status, "exit status 3");
  EXPECT_EQ(seen.end->error, "exit status 3");
}

TEST(Process, DeliversAllOfALargeOutput) {
  const Seen seen = run(shell("head -c 3000000 /dev/zero"));
  EXPECT_EQ(seen.out.size(), 3'000'000u);
}

TEST(Process, SaysWhatCannotBeExecutedLikeAShell) {
  Launch launch = shell("");
  launch.argv = {"no-such-program"};
  Seen seen = run(launch);
  EXPECT_EQ(seen.errors, "no-such-program: not found\n");
  EXPECT_EQ(seen.end->exit_code, 127);
  launch.argv = {"/"};
  seen = run(launch);
  EXPECT_EQ(seen.errors, "/: cannot be executed\n");
  EXPECT_EQ(seen.end->exit_code, 126);
}

TEST(Process, RunsAScriptWithoutAFirstLine) {
  Scratch scratch;
  scratch.write("script", "echo \"$0 $1\"");
  ::chmod((scratch / "script").c_str(), 0755);
  Launch launch = shell("");
  launch.argv = {scratch / "script", "one"};
  EXPECT_EQ(run(launch).out, scratch / "script" + " one\n");
}

TEST(Process, KeepsNamesInTheEnvironmentThatShellsDrop) {
  Launch launch = shell("");
  launch.argv = {"env"};
  launch.env["a.b"] = "1";
  EXPECT_NE(run(launch).out.find("a.b=1\n"), std::string::npos);
}

TEST(Process, ABadFolderIsTheCallersMistake) {
  Launch launch = shell("true");
  launch.cwd = "/no/such/folder";
  const auto launched = executor::launch(launch);
  ASSERT_FALSE(launched.ok());
  EXPECT_EQ(launched.error().code, base::ErrorCode::kInvalid);
}

TEST(Process, InheritsNoDescriptorAndIgnoresNoSignal) {
  const Seen seen = run(shell("ls /proc/$$/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status"));
  for (const std::string& line : base::split(seen.out, '\n')) {
    if (const auto fd = base::parse_integer(line)) EXPECT_LT(*fd, 3) << seen.out;
    const auto colon = line.find(':');
    if (colon != std::string::npos)
      EXPECT_EQ(base::trim(line.substr(colon + 1)), "0000000000000000");
  }
}

TEST(Process, ALingeringDescendantDoesNotDelayTheEnd) {
  const auto began = std::chrono::steady_clock::now();
  const Seen seen = run(shell("sleep 30 & echo $!"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  ASSERT_TRUE(seen.end);
  EXPECT_EQ(seen.end->exit_code, 0);
  const auto pid = base::parse_integer(base::trim(seen.out));
  ASSERT_TRUE(pid) << seen.out;
  EXPECT_EQ(::kill(static_cast<pid_t>(*pid), SIGKILL), 0) << "it was not to be killed";
}

TEST(Process, AStuckTerminalSizeIsSeenInside) {
  Launch launch = shell("stty size; tty > /dev/null && echo tty");
  launch.terminal = TerminalSize{100, 30};
  const Seen seen = run(launch);
  EXPECT_EQ(seen.out, "30 100\r\ntty\r\n");
}

aio::Task<int> one_stalled_reader(aio::Loop& loop, std::vector<Seen>& seen, bool& stalled_was_cut) {
  Processes processes(loop.executor(), std::nullopt);
  auto process = processes.start({}, shell("head -c 2000000 /dev/zero"), std::nullopt);
  const auto stalled = process->process->subscribe();  // Takes nothing.
  seen.push_back(co_await listen(process->subscriber));
  stalled_was_cut = stalled->cut_off();
  co_return 0;
}

TEST(Process, AReaderThatStallsIsCutOffAndTheOtherReadsOn) {
  aio::Loop loop;
  std::vector<Seen> seen;
  bool cut = false;
  loop.run(one_stalled_reader(loop, seen, cut));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].out.size(), 2'000'000u);
  EXPECT_TRUE(cut);
}

aio::Task<> drain_into(std::shared_ptr<Fanout::Subscriber> subscriber, Seen& seen) {
  seen = co_await listen(subscriber);
}

aio::Task<int> a_lone_slow_reader(aio::Loop& loop, std::size_t& held_back, Seen& seen) {
  Scratch scratch;
  Processes processes(loop.executor(), std::nullopt);
  auto process = processes.start(
      {}, shell("head -c 2000000 /dev/zero; echo done > " + scratch / "done"), std::nullopt);
  const auto subscriber = process->subscriber;
  // Longer than the patience that is had with one of several.
  co_await aio::sleep_for(Fanout::kPatience + milliseconds(500));
  held_back = !std::filesystem::exists(scratch.path() / "done");
  co_await drain_into(subscriber, seen);
  co_return 0;
}

TEST(Process, ALoneSlowReaderHoldsTheProcessBack) {
  aio::Loop loop;
  std::size_t held_back = 0;
  Seen seen;
  loop.run(a_lone_slow_reader(loop, held_back, seen));
  EXPECT_TRUE(held_back);
  EXPECT_EQ(seen.out.size(), 2'000'000u);
}

aio::Task<int> a_reader_late_for_the_end(aio::Loop& loop, Seen& seen) {
  Processes processes(loop.executor(), std::nullopt);
  // More than a reader's queue holds, and less than pipe, pump and queue together: it ends unread.
  auto process = processes.start({}, shell("head -c 330000 /dev/zero"), std::nullopt);
  const auto subscriber = process->subscriber;
  const pid_t pid = process->process->pid();
  for (int i = 0; i < 2'000 && ::kill(pid, 0) == 0; ++i) co_await aio::sleep_for(milliseconds(10));
  EXPECT_NE(::kill(pid, 0), 0) << "it has not ended";
  co_await aio::sleep_for(Process::kLingering + milliseconds(200));
  seen = co_await listen(subscriber, milliseconds(50));
  co_return 0;
}

TEST(Process, AReaderThatIsLateForTheEndGetsAllOfIt) {
  aio::Loop loop;
  Seen seen;
  loop.run(a_reader_late_for_the_end(loop, seen));
  EXPECT_EQ(seen.out.size(), 330'000u);
}

aio::Task<int> lifetime_ends(aio::Loop& loop, Seen& seen, pid_t& survivor) {
  Scratch scratch;
  Processes processes(loop.executor(), std::nullopt);
  auto process =
      processes.start({}, shell("setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 60' & wait"),
                      milliseconds(700));
  seen = co_await listen(process->subscriber);
  survivor = static_cast<pid_t>(base::parse_integer(base::trim(seen.out)).value_or(0));
  co_return 0;
}

TEST(Process, ALifetimeEndsTheWholeTree) {
  aio::Loop loop;
  Seen seen;
  pid_t survivor = 0;
  loop.run(lifetime_ends(loop, seen, survivor));
  ASSERT_TRUE(seen.end);
  EXPECT_EQ(seen.end->status, "signal: killed");
  EXPECT_EQ(seen.end->exit_code, -1);
  EXPECT_FALSE(seen.end->exited);
  ASSERT_GT(survivor, 1) << seen.out;
  EXPECT_TRUE(base::eventually([&] { return !base::runs(survivor); }));
}

TEST(Tree, FindsDescendantsByParentSessionAndGroup) {
  const std::vector<base::ProcessFacts> all = {
      {1, 0, 1, 1, 1},      // init
      {10, 1, 10, 10, 2},   // the root
      {11, 10, 10, 10, 3},  // a child
      {12, 11, 12, 12, 4},  // a grandchild in a session of its own
      {13, 12, 12, 12, 5},  // and its child
      {14, 1, 14, 10, 6},   // an orphan of the session
      {15, 1, 15, 15, 7},   // somebody else
      {16, 15, 15, 15, 8},
  };
  std::vector<pid_t> pids;
  for (const base::ProcessFacts& process : descendants(all, 10)) pids.push_back(process.pid);
  EXPECT_EQ(pids, (std::vector<pid_t>{10, 11, 12, 13, 14}));
}

TEST(End, IsToldInTheWordsOfTheProtocol) {
  EXPECT_EQ(describe_end(0).status, "exit status 0");
  EXPECT_FALSE(describe_end(0).error);
  EXPECT_EQ(describe_end(SIGKILL).status, "signal: killed");
  EXPECT_EQ(describe_end(SIGTERM).error, "signal: terminated");
  EXPECT_EQ(describe_end(SIGKILL).exit_code, -1);
}

}  // namespace
}  // namespace executor
