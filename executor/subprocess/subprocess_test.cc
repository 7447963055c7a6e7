#include "executor/subprocess/subprocess.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <future>

#include "executor/confine/landlock.h"
#include "executor/subprocess/testing/child.h"
#include "executor/subprocess/testing/site.h"
#include "executor/subprocess/testing/typist.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using base::Milliseconds;
using testing::HeldBy;
using testing::read_all;
using testing::Site;
using testing::tell_both;

Exit code(int number) { return {.code = number, .signal = std::nullopt}; }
Exit signalled(int number) { return {.code = std::nullopt, .signal = number}; }

// What it wrote to stdout, once it has.
aio::Task<std::string> output_of(Site& site, SpawnRequest request) {
  const auto process = co_await site.spawn(std::move(request));
  if (!process) co_return "<none>";
  const std::string written = co_await read_all(process->out());
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  co_return written;
}

aio::Task<> passes_argv_as_it_is(Site& site) {
  EXPECT_EQ(co_await output_of(site, site.request({"printf", "[%s]", "a b", "$HOME", "`id`", "*",
                                                   "", "'", "\"", "\n", ";exit", "\xff"})),
            "[a b][$HOME][`id`][*][]['][\"][\n][;exit][\xff]");
  // Nor do what has no #! and what has no program get one.
  site.scratch.write("script", "echo from a shell");
  ::chmod((site.scratch / "script").c_str(), 0755);
  const auto spawned =
      co_await site.subprocesses.spawn(site.caller, site.request({site.scratch / "script"}));
  EXPECT_FALSE(spawned);
  if (!spawned) EXPECT_EQ(spawned.error().error_number, ENOEXEC);
}
// covers: P3
TEST(Subprocess, NoShellSeesTheArguments) { tell_both(passes_argv_as_it_is); }

aio::Task<> runs_in_its_folder_and_environment(Site& site) {
  fs::create_directory(site.scratch.path() / "work");
  auto request = site.shell("pwd; echo $A$B; env | grep -c '^API_KEY='; cat");
  request.cwd = site.scratch / "work";
  request.env.emplace_back("A", "a");
  request.env.emplace_back("API_KEY", "asked for");
  EXPECT_EQ(co_await output_of(site, std::move(request)), site.scratch / "work" + "\na\n1\n");
}
// covers: 4.3
TEST(Subprocess, RunsInItsFolderWithItsEnvironment) {
  tell_both(runs_in_its_folder_and_environment);
}

struct Refusal {
  SpawnRequest request;
  int error_number;
  ProcessFailure::Step step;
};

aio::Task<> says_why_it_did_not_begin(Site& site) {
  using Step = ProcessFailure::Step;
  auto nowhere = site.shell("true");
  nowhere.cwd = "/no/such/folder";
  auto in_a_file = site.shell("true");
  site.scratch.write("file", "");
  in_a_file.cwd = site.scratch / "file";
  const Refusal refusals[] = {
      {nowhere, ENOENT, Step::kFolder},
      {in_a_file, ENOTDIR, Step::kFolder},
      {site.request({"no-such-program"}), ENOENT, Step::kProgram},
      {site.request({"/no/such/program"}), ENOENT, Step::kProgram},
      {site.request({"/"}), EACCES, Step::kProgram},
      {site.request({site.scratch / "file"}), EACCES, Step::kProgram},
  };
  for (const Refusal& refusal : refusals) {
    const auto spawned = co_await site.subprocesses.spawn(site.caller, refusal.request);
    EXPECT_FALSE(spawned);
    if (spawned) continue;
    EXPECT_EQ(spawned.error().fault, ProcessFault::kSpawnFailed);
    EXPECT_EQ(spawned.error().error_number, refusal.error_number);
    EXPECT_EQ(spawned.error().step, refusal.step) << spawned.error().message;
    // Whoever did not hear that learns it by the handle.
    const auto process = site.subprocesses.find(site.caller, refusal.request.id);
    EXPECT_TRUE(process);
    if (!process) continue;
    EXPECT_TRUE(co_await (*process)->until(Milestone::kEmpty));
    const auto exited = co_await (*process)->until(Milestone::kExit);
    EXPECT_TRUE(!exited && exited.error().fault == ProcessFault::kSpawnFailed);
    EXPECT_EQ((*process)->state().pid, -1);
    EXPECT_FALSE((*process)->state().exit) << "what reported the failure is nobody's exit";
  }
  if (site.cgroup) EXPECT_TRUE(site.cgroup->empty());
}
// covers: P2
TEST(Subprocess, SaysWhyItDidNotBegin) { tell_both(says_why_it_did_not_begin); }

aio::Task<> gives_stdin(Site& site) {
  auto request = site.shell("cat; echo end");
  request.stdin_mode = Ignored{};
  EXPECT_EQ(co_await output_of(site, request), "end\n");
  request = site.shell("cat; echo end");
  request.stdin_mode = Data{std::string("a\0b\n", 4)};
  EXPECT_EQ(co_await output_of(site, request), std::string("a\0b\nend\n", 8));
  request = site.shell("exec <&-; echo end");
  request.stdin_mode = Data{std::string(4 << 20, 'x')};
  EXPECT_EQ(co_await output_of(site, request), "end\n") << "that nobody reads it is no error";

  request = site.shell("cat; echo end");
  request.stdin_mode = Piped{};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(process->input()->put(0, "one "));
  EXPECT_TRUE(process->input()->put(0, "one two "));
  EXPECT_TRUE(process->input()->end_at(8));
  EXPECT_EQ(co_await read_all(process->out()), "one two end\n");
  EXPECT_EQ(process->state().input_arrived, 8);
}
// covers: 4.2
TEST(Subprocess, GivesItsStdinToTheEnd) { tell_both(gives_stdin); }

aio::Task<> ignores_outputs(Site& site) {
  auto request =
      site.shell("echo out; echo err >&2; ls -l /proc/self/fd/1 > " + site.scratch / "where");
  request.stdout_mode = Ignored{};
  request.stderr_mode = Ignored{};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_FALSE(process->out());
  EXPECT_FALSE(process->errors());
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
  EXPECT_EQ(process->state().exit, code(0));
}
// covers: 4.2
TEST(Subprocess, DiscardsWhatNobodyWants) { tell_both(ignores_outputs); }

aio::Task<> stalls_only_its_own(Site& site) {
  auto request = site.shell("head -c 3000000 /dev/zero; echo done > " + site.scratch / "stalled");
  request.stdout_mode = Piped{};
  const auto stalled = co_await site.spawn(request);
  request = site.shell("head -c 3000000 /dev/zero; echo done > " + site.scratch / "read");
  request.stdout_mode = Piped{};
  const auto read = co_await site.spawn(request);
  if (!stalled || !read) co_return;
  const std::string bytes = co_await read_all(read->out());
  EXPECT_EQ(bytes.size(), 3'000'000u);
  EXPECT_TRUE(co_await read->until(Milestone::kSettled));
  EXPECT_TRUE(fs::exists(site.scratch.path() / "read"));
  EXPECT_FALSE(fs::exists(site.scratch.path() / "stalled")) << "nobody reads it";
  EXPECT_FALSE(stalled->state().exit);
  const auto window = static_cast<std::int64_t>(kPipeWindowBytes);
  while (stalled->held() < window) co_await aio::sleep_for(Milliseconds(1));
  EXPECT_EQ(stalled->held(), window);
  const std::string late = co_await read_all(stalled->out());
  EXPECT_EQ(late.size(), 3'000'000u) << "and nothing of it was lost";
}
// covers: 4.2
TEST(Subprocess, AStalledReaderStallsItsOwnProcessOnly) { tell_both(stalls_only_its_own); }

aio::Task<> keeps_the_exact_tail(Site& site) {
  // 20 lines of 10 bytes: "line 0001\n" to "line 0020\n".
  auto request =
      site.shell("i=1; while [ $i -le 20 ]; do printf 'line %04d\\n' $i; i=$((i+1)); done");
  request.stdout_mode = Collect{35};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  for (int time = 0; time < 2; ++time) {
    const auto piece = process->out()->read(0, 1'000);
    EXPECT_TRUE(piece);
    if (!piece) co_return;
    EXPECT_EQ(piece->bytes, "0017\nline 0018\nline 0019\nline 0020\n");
    EXPECT_EQ(piece->begin, 165) << "the mark of the drop";
    EXPECT_EQ(piece->next, 200);
    EXPECT_TRUE(piece->lossy);
    EXPECT_TRUE(piece->ended);
  }
  const auto later = process->out()->read(190, 4);
  EXPECT_TRUE(later && later->bytes == "line" && !later->lossy && !later->ended);
  const auto end = process->out()->read(200, 4);
  EXPECT_TRUE(end && end->bytes.empty() && !end->lossy && end->ended);
  EXPECT_FALSE(process->out()->read(201, 4));
  EXPECT_FALSE(process->out()->read(-1, 4));

  request = site.shell("printf 12345");
  request.stdout_mode = Collect{5, 100};
  const auto full = co_await site.spawn(request);
  if (!full) co_return;
  EXPECT_TRUE(co_await full->until(Milestone::kSettled));
  const auto all = full->out()->read(0, 100);
  EXPECT_TRUE(all && all->bytes == "12345" && !all->lossy);
  EXPECT_FALSE(full->state().out->lossy);
  EXPECT_FALSE(full->state().out->spill_path) << "nothing was dropped";
}
// covers: O1 O2
TEST(Subprocess, KeepsTheExactTailByOffset) { tell_both(keeps_the_exact_tail); }

aio::Task<> spills_all(Site& site) {
  const std::string script = "head -c 100000 /dev/zero | tr '\\0' a; head -c 100000 /dev/zero";
  auto request = site.shell(script);
  request.stdout_mode = Collect{1'000, 200'000};
  const auto process = co_await site.spawn(request);
  request = site.shell(script);
  request.stdout_mode = Collect{1'000, 199'999};
  const auto beyond = co_await site.spawn(request);
  if (!process || !beyond) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
  EXPECT_TRUE(co_await beyond->until(Milestone::kSettled));
  const auto path = process->state().out->spill_path;
  EXPECT_TRUE(path);
  EXPECT_FALSE(beyond->state().out->spill_path);
  if (!path) co_return;
  const auto spilled = base::read_file(*path);
  EXPECT_TRUE(spilled && *spilled == std::string(100'000, 'a') + std::string(100'000, '\0'));
  EXPECT_EQ(process->out()->read(0, 1)->spill_path, path);
  EXPECT_EQ(process->held(), 1'000);
  EXPECT_TRUE(co_await site.subprocesses.end_session(site.caller.session));
  while (fs::exists(*path)) co_await aio::sleep_for(Milliseconds(1));
}
// covers: O3
TEST(Subprocess, SpillsTheWholeStreamUntilItsSessionEnds) { tell_both(spills_all); }

aio::Task<> carries_bytes(Site& site) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  auto request = site.shell("cat");
  request.stdin_mode = Data{bytes};
  EXPECT_EQ(co_await output_of(site, request), bytes);
}
// covers: O4
TEST(Subprocess, CarriesBytesAndNotText) { tell_both(carries_bytes); }

aio::Task<> holds_no_more_than_asked(Site& site) {
  auto request = site.shell("head -c 200000000 /dev/zero; printf end");
  request.stdout_mode = Collect{64'000};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
  EXPECT_EQ(process->state().out->bytes, 200'000'003);
  EXPECT_EQ(process->held(), 64'000);
  EXPECT_EQ(process->out()->read(200'000'000, 10)->bytes, "end");
}
// covers: O5
TEST(Subprocess, HoldsNoMoreThanWasAskedFor) { tell_both(holds_no_more_than_asked); }

aio::Task<> tells_the_facts_of_the_exit(Site& site) {
  const std::pair<const char*, Exit> cases[] = {{"exit 0", code(0)},
                                                {"exit 137", code(137)},
                                                {"kill -9 $$", signalled(SIGKILL)},
                                                {"kill -TERM $$", signalled(SIGTERM)}};
  for (const auto& [script, exit] : cases) {
    const auto process = co_await site.spawn(site.shell(script));
    if (!process) co_return;
    EXPECT_TRUE(co_await process->until(Milestone::kExit));
    EXPECT_EQ(process->state().exit, exit) << script;
  }
}
// covers: X1
TEST(Subprocess, TellsCodeOrSignal) { tell_both(tells_the_facts_of_the_exit); }

aio::Task<> settles_after_the_grace(Site& site) {
  auto request = site.shell("head -c 100000 /dev/zero; sleep 1000 & exit 7");
  request.grace_ms = 100;
  request.stdout_mode = Collect{1'000, 1'000'000};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
  const SubprocessState state = process->state();
  EXPECT_EQ(state.exit, code(7)) << "the status of the command itself";
  EXPECT_FALSE(state.empty);
  EXPECT_TRUE(state.out->ended);
  EXPECT_EQ(state.out->bytes, 100'000);
  EXPECT_FALSE(state.out->spill_path) << "it has missed the end";
  EXPECT_EQ(site.left(), 1u) << "what holds the pipe was not harmed";
  process->terminate(Milliseconds(1));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
}
// covers: X2
TEST(Subprocess, SettlesWithTheCommandsStatusWhenItsPipesAreHeldOpen) {
  tell_both(settles_after_the_grace);
}

aio::Task<> waits_for_the_end_of_a_pipe(Site& site) {
  const std::string gate = site.scratch / "gate";
  auto request =
      site.shell("{ while [ ! -e " + gate + " ]; do sleep 0.01; done; echo late; } & exit 7");
  request.grace_ms = 1;
  request.stdout_mode = Piped{};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kExit));
  EXPECT_FALSE(co_await aio::within(process->until(Milestone::kSettled), Milliseconds(100)));
  site.scratch.write("gate", "");
  EXPECT_EQ(co_await read_all(process->out()), "late\n");
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
}
// covers: X2
TEST(Subprocess, WaitsForTheNaturalEndOfAPipe) { tell_both(waits_for_the_end_of_a_pipe); }

aio::Task<> believes_the_status(Site& site) {
  const auto process = co_await site.spawn(
      site.shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"));
  if (!process) co_return;
  co_await process->out()->wait_for(0);
  process->terminate(Milliseconds(10'000));
  process->terminate(Milliseconds(10'000));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  EXPECT_EQ(process->state().exit, code(3)) << "it was asked to end, and did so in its own way";
  EXPECT_EQ(co_await read_all(process->out()), "ready\nbye\n");
}
// covers: X3 T1
TEST(Subprocess, AKillThatWasAskedForSaysNothingOfTheExit) { tell_both(believes_the_status); }

aio::Task<> tells_three_events_apart(Site& site) {
  // It closes its outputs and lives on; then it ends and leaves somebody behind.
  const std::string gate = site.scratch / "gate";
  const auto process = co_await site.spawn(site.shell(
      "exec >&- 2>&-; while [ ! -e " + gate + " ]; do sleep 0.01; done; sleep 1000 & exit 0"));
  if (!process) co_return;
  co_await process->out()->wait_for_end();
  EXPECT_TRUE(process->out()->read(0, 1)->ended);
  EXPECT_FALSE(process->state().exit);
  site.scratch.write("gate", "");
  EXPECT_TRUE(co_await process->until(Milestone::kExit));
  EXPECT_FALSE(process->state().empty);
  process->terminate(Milliseconds(10'000));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
}
// covers: X4
TEST(Subprocess, TellsEndOfOutputExitAndEmptinessApart) { tell_both(tells_three_events_apart); }

aio::Task<> signals_reach_whom_they_are_for(Site& site) {
  const std::string noted = site.scratch / "noted";
  const std::string wait = "while :; do sleep 0.01; done";
  const auto process = co_await site.spawn(
      site.shell("trap 'echo command >> " + noted + "' USR1; sh -c \"trap 'echo group >> " + noted +
                 "' USR1; " + wait + "\" & setsid sh -c \"trap 'echo apart >> " + noted +
                 "' USR1; " + wait + "\" & echo ready; " + wait));
  if (!process) co_return;
  co_await process->out()->wait_for(0);
  const auto settled = [&site, noted](std::string expected) {
    return base::eventually([&] {
      auto lines = base::split(site.scratch.read("noted"), '\n');
      std::sort(lines.begin(), lines.end());
      return base::join(lines, " ") == " " + expected;
    });
  };
  // The traps of its children are not set with its own, and one that is not yet would be deadly.
  while (site.left() < 6) co_await aio::sleep_for(Milliseconds(5));
  EXPECT_TRUE(process->signal(SIGUSR1, Reach::kCommand));
  EXPECT_TRUE(settled("command"));
  EXPECT_TRUE(process->signal(SIGUSR1, Reach::kGroup));
  EXPECT_TRUE(settled("command command group"));
  EXPECT_TRUE(process->signal(SIGUSR1, Reach::kTree));
  EXPECT_TRUE(settled("apart command command command group group"));
  EXPECT_FALSE(process->signal(0, Reach::kTree));
  EXPECT_FALSE(process->signal(NSIG, Reach::kTree));
  process->terminate(Milliseconds(1));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  EXPECT_EQ(*process->signal(SIGUSR1, Reach::kTree), 0) << "nobody is left";
}
// covers: T1
TEST(Subprocess, SignalsReachTheCommandItsGroupOrItsTree) {
  tell_both(signals_reach_whom_they_are_for);
}

// covers: T3
TEST(SignalEach, NeverSignalsANumberThatMayBeAStrangers) {
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    for (;;) ::pause();
  }
  int looks = 0;
  // A member at the first look; at the second it has ended, and the number is another's.
  const auto sent = signal_each(
      [&] { return ++looks == 1 ? std::vector<pid_t>{stranger} : std::vector<pid_t>{}; }, SIGKILL);
  EXPECT_EQ(*sent, 0);
  EXPECT_TRUE(base::runs(stranger));
  const auto meant = signal_each([&] { return std::vector<pid_t>{stranger}; }, SIGKILL);
  EXPECT_EQ(*meant, 1) << "once, although it is listed again and again";
  ::waitpid(stranger, nullptr, 0);
}

aio::Task<> handles_are_the_callers_choice(Site& site) {
  auto request = site.shell("cat");
  request.stdin_mode = Piped{};
  const auto first = co_await site.spawn(request);
  if (!first) co_return;
  const auto again = co_await site.subprocesses.spawn(site.caller, request);
  EXPECT_TRUE(!again && again.error().fault == ProcessFault::kConflict);
  const auto found = site.subprocesses.find(site.caller, request.id);
  EXPECT_TRUE(found && *found == first) << "a reply that was lost can be attached to";
  EXPECT_EQ(site.subprocesses.find(site.caller, "another-handle-of-it").error().fault,
            ProcessFault::kNotFound);
  const auto second = co_await site.spawn(site.shell("exit 0"));
  EXPECT_EQ(site.subprocesses.list(site.caller, "", 10).size(), 2u);
  EXPECT_EQ(site.subprocesses.list(site.caller, request.id, 10).size(), 1u);
  EXPECT_EQ(site.subprocesses.list(site.caller, "", 1).size(), 1u);
  const auto too_early = site.subprocesses.release(site.caller, request.id);
  EXPECT_TRUE(!too_early && too_early.error().fault == ProcessFault::kConflict);
  EXPECT_TRUE(first->input()->end_at(0));
  EXPECT_TRUE(co_await first->until(Milestone::kEmpty));
  EXPECT_TRUE(site.subprocesses.release(site.caller, request.id));
  EXPECT_EQ(site.subprocesses.find(site.caller, request.id).error().fault, ProcessFault::kNotFound);
}
// covers: 4.7
TEST(Subprocess, HandlesAreTheCallersChoiceAndCanBeAttachedAgain) {
  tell_both(handles_are_the_callers_choice);
}

aio::Task<> outcomes_are_kept_for_a_while(Site& site) {
  std::vector<std::string> ids;
  for (int number = 0; number < 4; ++number) {
    const auto request = site.shell("printf 123");
    ids.push_back(request.id);
    const auto process = co_await site.spawn(request);
    if (!process) co_return;
    EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
    site.subprocesses.tick();
  }
  const auto known = [&](int number) {
    return site.subprocesses.find(site.caller, ids[static_cast<std::size_t>(number)]).ok();
  };
  EXPECT_FALSE(known(0)) << "three are kept";
  EXPECT_TRUE(known(1));
  site.subprocesses.tick();
  EXPECT_TRUE(known(1)) << "for three ticks";
  site.subprocesses.tick();
  EXPECT_FALSE(known(1));
  EXPECT_TRUE(known(2));
}
// covers: 4.7
TEST(Subprocess, OutcomesAreKeptToABoundInCountAndAge) {
  aio::testing::tell<Site>(outcomes_are_kept_for_a_while, HeldBy::kGroups,
                           SubprocessLimits{.over_max = 3, .over_kept = 4 * Subprocesses::kTick});
}

aio::Task<> wakes_who_waits_for_what_is_forgotten(Site& site) {
  auto request = site.shell("head -c 3000000 /dev/zero");
  request.stdout_mode = Piped{};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  co_await process->out()->wait_for(kPipeWindowBytes - 1);  // There is more, and no room for it.
  process->terminate(Milliseconds(1));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  EXPECT_FALSE(co_await aio::within(process->until(Milestone::kSettled), Milliseconds(50)))
      << "its output is not read to the end";
  EXPECT_TRUE(site.subprocesses.release(site.caller, request.id));
  const auto settled = co_await process->until(Milestone::kSettled);
  EXPECT_TRUE(!settled && settled.error().fault == ProcessFault::kNotFound);
  co_await process->out()->wait_for_end();
  const auto read = process->out()->read(0, 10);
  EXPECT_TRUE(!read && read.error().fault == ProcessFault::kNotFound)
      << "what broke off is not taken for an end";
}
// covers: X4
TEST(Subprocess, WakesWhoWaitsForWhatIsForgotten) {
  tell_both(wakes_who_waits_for_what_is_forgotten);
}

aio::Task<> bounds_what_runs(Site& site) {
  const auto one = co_await site.spawn(site.request({"sleep", "1000"}));
  const auto two = co_await site.spawn(site.request({"sleep", "1000"}));
  if (!one || !two) co_return;
  const auto three = co_await site.subprocesses.spawn(site.caller, site.request({"sleep", "1000"}));
  EXPECT_TRUE(!three && three.error().fault == ProcessFault::kBusy);
  one->terminate(Milliseconds(1));
  EXPECT_TRUE(co_await one->until(Milestone::kEmpty));
  const auto then = co_await site.spawn(site.request({"true"}));
  EXPECT_TRUE(then);
}
TEST(Subprocess, BoundsHowManyRun) {
  aio::testing::tell<Site>(bounds_what_runs, HeldBy::kGroups, SubprocessLimits{.running_max = 2});
}

aio::Task<> bounds_what_is_held(Site& site) {
  auto over = site.shell("head -c 1000 /dev/zero");
  over.stdout_mode = Collect{1'000};
  over.stderr_mode = Ignored{};
  const auto first = co_await site.spawn(over);
  if (!first) co_return;
  EXPECT_TRUE(co_await first->until(Milestone::kEmpty));
  auto large = site.request({"sleep", "1000"});
  large.stdout_mode = Collect{1'500};
  large.stderr_mode = Ignored{};
  EXPECT_TRUE(co_await site.spawn(large));
  EXPECT_FALSE(site.subprocesses.find(site.caller, over.id)) << "what is over makes room";
  large.id += "-again";
  const auto refused = co_await site.subprocesses.spawn(site.caller, large);
  EXPECT_TRUE(!refused && refused.error().fault == ProcessFault::kBusy) << "what runs does not";
}
// covers: O5
TEST(Subprocess, BoundsWhatOutputsHoldTogether) {
  aio::testing::tell<Site>(bounds_what_is_held, HeldBy::kGroups,
                           SubprocessLimits{.held_bytes_max = 2'000});
}

aio::Task<> is_lost_with_its_incarnation(Site& site) {
  const auto request = site.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  co_await process->out()->wait_for(0);
  site.subprocesses.lose_all();
  const auto waited = co_await process->until(Milestone::kEmpty);
  EXPECT_TRUE(!waited && waited.error().fault == ProcessFault::kLost);
  const auto read = process->out()->read(0, 10);
  EXPECT_TRUE(!read && read.error().fault == ProcessFault::kLost) << "nor is it an end of output";
  const auto found = site.subprocesses.find(site.caller, request.id);
  EXPECT_TRUE(!found && found.error().fault == ProcessFault::kLost)
      << "not as if there had never been one, and no fresh stream";
  EXPECT_TRUE(co_await site.subprocesses.end_session(site.caller.session));
  EXPECT_EQ(site.left(), 0u);
}
// covers: 4.7
TEST(Subprocess, IsLostWithItsIncarnation) { tell_both(is_lost_with_its_incarnation); }

class ConfinedSubprocess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (why_unconfinable(PermissionMode::kReadOnly, landlock_abi()))
      GTEST_SKIP() << "a kernel without Landlock 6";
  }
};

// Not in a temporary area, which every mode but one may change.
struct Workspace {
  fs::path folder = fs::current_path() / ("subprocess-" + std::to_string(::getpid()));
  Workspace() { fs::create_directories(folder / "inside"); }
  ~Workspace() { fs::remove_all(folder); }
};

aio::Task<> is_held_to_its_mode(Site& site) {
  const Workspace workspace;
  const std::string script =
      "echo x > inside/a; echo x > outside; echo read; ls inside outside 2>/dev/null";
  for (const PermissionMode mode : {PermissionMode::kReadOnly, PermissionMode::kWorkspaceWrite}) {
    auto request = site.shell(script);
    request.cwd = workspace.folder.string();
    site.caller.permission = {mode, {(workspace.folder / "inside").string()}};
    const std::string written = co_await output_of(site, request);
    EXPECT_EQ(written,
              mode == PermissionMode::kReadOnly ? "read\ninside:\n" : "read\ninside:\na\n");
  }
}
// covers: 2.6
TEST_F(ConfinedSubprocess, IsHeldToTheModeOfItsCaller) { tell_both(is_held_to_its_mode); }

// As on a kernel without it: the call that makes a ruleset is unknown.
bool take_landlock_away() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = steps};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

aio::Task<> is_refused_unconfined(Site& site, std::string& why) {
  site.caller.permission.mode = PermissionMode::kWorkspaceWrite;
  const auto spawned = co_await site.subprocesses.spawn(site.caller, site.request({"true"}));
  if (!spawned && spawned.error().fault == ProcessFault::kConfinementUnavailable)
    why = spawned.error().message;
  site.caller.permission.mode = PermissionMode::kDangerFullAccess;
  co_await site.spawn(site.request({"true"}));
}

// covers: 2.6
TEST(Subprocess, IsRefusedWithTheReasonWhereItCannotBeConfined) {
  const testing::Child child = testing::in_a_child([](base::Fd& in) {
    if (!take_landlock_away()) return 1;
    Site site(HeldBy::kReapers);
    std::string why;
    aio::testing::run(site.loop, is_refused_unconfined(site, why));
    static_cast<void>(base::write_all(in.get(), why + "\n"));
    return 0;
  });
  EXPECT_EQ(child.status, 0);
  EXPECT_NE(child.said.find("has no Landlock"), std::string::npos) << child.said;
}

aio::Task<> wider_handles_are_refused(Site& site) {
  const auto request = site.request({"sleep", "1000"});
  if (!co_await site.spawn(request)) co_return;
  const Caller narrow{"session-2", {PermissionMode::kReadOnly, {"/"}}};
  const auto found = site.subprocesses.find(narrow, request.id);
  EXPECT_TRUE(!found && found.error().fault == ProcessFault::kDenied);
  EXPECT_FALSE(site.subprocesses.terminate(narrow, request.id, std::nullopt));
  EXPECT_FALSE(site.subprocesses.adopt(narrow, request.id));
  EXPECT_FALSE(site.subprocesses.release(narrow, request.id));
  EXPECT_TRUE(site.subprocesses.list(narrow, "", 10).empty());
  EXPECT_EQ(site.left(), 1u);
}
// covers: 2.6
TEST(Subprocess, AHandleOfAWiderModeIsRefused) { tell_both(wider_handles_are_refused); }

aio::Task<> keep_spawn(Site& site, SpawnRequest request,
                       std::optional<ProcessResult<std::shared_ptr<Subprocess>>>& spawned) {
  spawned.emplace(co_await site.subprocesses.spawn(site.caller, std::move(request)));
}

aio::Task<> wait_behind(aio::Background& background, std::shared_future<void> gate) {
  static_cast<void>(co_await background.run([gate]() -> base::Result<base::Done> {
    gate.wait();
    return base::Done{};
  }));
}

aio::Task<> an_end_before_the_begin_wins(Site& site) {
  // Making what confines it takes a while, in which it can be terminated already.
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  aio::TaskGroup held(site.loop.executor());
  for (int thread = 0; thread < 2; ++thread) held.spawn(wait_behind(site.background, opened));
  site.caller.permission.mode = PermissionMode::kReadOnly;
  const auto request = site.request({"sleep", "1000"});
  std::optional<ProcessResult<std::shared_ptr<Subprocess>>> spawned;
  aio::TaskGroup tasks(site.loop.executor());
  tasks.spawn(keep_spawn(site, request, spawned));
  while (!site.subprocesses.terminate(site.caller, request.id, std::nullopt))
    co_await aio::sleep_for(Milliseconds(0));
  gate.set_value();
  co_await held.wait();
  co_await tasks.wait();
  EXPECT_TRUE(spawned && !*spawned);
  if (spawned && !*spawned) EXPECT_EQ(spawned->error().fault, ProcessFault::kCancelled);
  EXPECT_EQ(site.left(), 0u);
  EXPECT_EQ(site.subprocesses.find(site.caller, request.id).error().fault, ProcessFault::kNotFound);
}
// covers: T5
TEST_F(ConfinedSubprocess, AnEndBeforeTheBeginWins) { tell_both(an_end_before_the_begin_wins); }

aio::Task<ProcessResult<std::string>> never_whole(aio::Executor executor) {
  aio::Condition more(std::move(executor));
  for (;;) co_await more.wait();
}
aio::Task<> keep_spawn_with_data(
    Site& site, SpawnRequest request,
    std::optional<ProcessResult<std::shared_ptr<Subprocess>>>& spawned) {
  spawned.emplace(co_await site.subprocesses.spawn(site.caller, std::move(request),
                                                   never_whole(site.loop.executor())));
}
aio::Task<> an_end_before_its_data_wins(Site& site) {
  for (const bool session_ends : {false, true}) {
    const auto request = site.request({"sleep", "1000"});
    std::optional<ProcessResult<std::shared_ptr<Subprocess>>> spawned;
    aio::TaskGroup tasks(site.loop.executor());
    tasks.spawn(keep_spawn_with_data(site, request, spawned));
    co_await aio::sleep_for(Milliseconds(0));
    if (session_ends)
      EXPECT_TRUE(co_await site.subprocesses.end_session(site.caller.session));
    else
      EXPECT_TRUE(site.subprocesses.terminate(site.caller, request.id, std::nullopt));
    co_await tasks.wait();
    EXPECT_TRUE(spawned && !*spawned && spawned->error().fault == ProcessFault::kCancelled);
  }
  EXPECT_EQ(site.left(), 0u);
}
// covers: T5
TEST(Subprocess, AnEndBeforeItsDataAreWholeWins) { tell_both(an_end_before_its_data_wins); }

aio::Task<> an_end_right_after_the_begin_wins(Site& site) {
  for (int time = 0; time < 20; ++time) {
    const std::vector<std::string> argv = {"sleep", "1000"};
    const auto request = time % 2 == 0 ? site.request(argv) : testing::in_terminal(site, argv);
    std::optional<ProcessResult<std::shared_ptr<Subprocess>>> spawned;
    aio::TaskGroup tasks(site.loop.executor());
    tasks.spawn(keep_spawn(site, request, spawned));
    while (!site.subprocesses.terminate(site.caller, request.id, Milliseconds(1)))
      co_await aio::sleep_for(Milliseconds(0));
    co_await tasks.wait();
    const auto process = site.subprocesses.find(site.caller, request.id);
    EXPECT_TRUE(process);
    if (process) EXPECT_TRUE(co_await (*process)->until(Milestone::kEmpty));
  }
  EXPECT_EQ(site.left(), 0u);
}
// covers: T5 Y1
TEST(Subprocess, AnEndWhileItBeginsLeavesNothing) { tell_both(an_end_right_after_the_begin_wins); }

}  // namespace
}  // namespace executor
