#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "executor/subprocess/subprocesses.h"
#include "executor/subprocess/testing/child.h"
#include "executor/subprocess/testing/site.h"
#include "executor/subprocess/testing/typist.h"
#include "libs/base/files.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using base::Milliseconds;
using testing::HeldBy;
using testing::in_terminal;
using testing::kPrompt;
using testing::shell_in_terminal;
using testing::sit_down;
using testing::Site;
using testing::tell_both;
using testing::Typist;

constexpr auto kYes = InputWaiting::kYes;
constexpr auto kNo = InputWaiting::kNo;

aio::Task<> shows_all_from_the_first_byte(Site& site) {
  const auto typist = co_await sit_down(site);
  if (!typist) co_return;
  EXPECT_EQ(typist->shown(), kPrompt) << "nothing of how it was started";
  typist->enter("exit 3");
  EXPECT_TRUE(co_await typist->process().until(Milestone::kSettled));
  EXPECT_EQ(typist->shown(), std::string(kPrompt) + "exit 3\r\nexit\r\n");
  EXPECT_EQ(typist->process().state().exit, (Exit{.code = 3, .signal = std::nullopt}));
  EXPECT_TRUE(typist->process().state().out->ended);
  EXPECT_TRUE(co_await typist->process().until(Milestone::kEmpty));
}
// covers: Y4 Y5
TEST(Terminal, ShowsAllFromTheFirstByteOfThePromptToTheEnd) {
  tell_both(shows_all_from_the_first_byte);
}

aio::Task<> is_the_command_s_own(Site& site) {
  auto request = in_terminal(
      site, {"sh", "-c",
             "stty size; echo $TERM; env | grep -c ^DSH_ ; ps -o sid=,tpgid= -p $$ | "
             "{ read -r session foreground; [ $session = $$ ] && [ $foreground = $$ ] && "
             "echo leads; }; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : < /dev/tty && echo all"});
  request.env = {{testing::kMark, site.mark}};
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
  const auto shown = process->out()->read(0, 1'000);
  EXPECT_EQ(shown->bytes, "40 160\r\nxterm-256color\r\n0\r\nleads\r\nall\r\n");
  EXPECT_EQ(process->state().terminal->rows, 40);

  request = in_terminal(site, {"sh", "-c", "echo $TERM"});
  const auto dumb = co_await site.spawn(request);
  if (!dumb) co_return;
  EXPECT_TRUE(co_await dumb->until(Milestone::kSettled));
  EXPECT_EQ(dumb->out()->read(0, 1'000)->bytes, "dumb\r\n");
}
// covers: 4.3 4.8
TEST(Terminal, IsTheCommandsOwnWithItsSizeAndEnvironment) { tell_both(is_the_command_s_own); }

struct Refusal {
  const char* name;
  void (*spoil)(SpawnRequest& request);
};
// covers: 4.8
TEST(Terminal, IsRefusedWhatItCannotHave) {
  Site site;
  const Refusal refusals[] = {
      {"no rows", [](SpawnRequest& request) { request.terminal->rows = 0; }},
      {"no columns", [](SpawnRequest& request) { request.terminal->columns = 0; }},
      {"an end of what is typed", [](SpawnRequest& request) { request.stdin_mode = Data{"x"}; }},
      {"errors apart", [](SpawnRequest& request) { request.stderr_mode = Piped{}; }},
      {"a reader who holds it back", [](SpawnRequest& request) { request.stdout_mode = Piped{}; }},
      {"nobody to read it", [](SpawnRequest& request) { request.stdout_mode = Ignored{}; }},
      {"too much", [](SpawnRequest& request) { request.stdout_mode = Collect{(4 << 20) + 1}; }},
      {"a spill", [](SpawnRequest& request) { request.stdout_mode = Collect{1, 1}; }},
  };
  EXPECT_TRUE(check(shell_in_terminal(site)));
  for (const Refusal& refusal : refusals) {
    SpawnRequest request = shell_in_terminal(site);
    refusal.spoil(request);
    const auto checked = check(request);
    EXPECT_TRUE(!checked && checked.error().fault == ProcessFault::kInvalid) << refusal.name;
  }
}

aio::Task<> tells_programs_its_size(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  typist->enter("trap 'stty size' WINCH; echo set");
  co_await typist->see("\r\nset");
  co_await typist->until(kYes);
  EXPECT_TRUE(typist->process().resize({.columns = 65535, .rows = 1}));
  typist->enter("");  // A shell that edits lines runs its traps then.
  co_await typist->see("1 65535\r\n");
  EXPECT_EQ(typist->process().state().terminal->columns, 65535);
  const auto refused = typist->process().resize({.columns = 0, .rows = 1});
  EXPECT_TRUE(!refused && refused.error().fault == ProcessFault::kInvalid);
}
TEST(Terminal, TellsProgramsThatItsSizeHasChanged) { tell_both(tells_programs_its_size); }

struct Program {
  const char* name;
  std::vector<std::string> argv;
  const char* first_seen;  // Before it waits.
};
aio::Task<> waits_for_its_user(Site& site, Program program) {
  auto process = co_await site.spawn(in_terminal(site, program.argv));
  if (!process) co_return;
  Typist typist(site, process);
  co_await typist.see(program.first_seen);
  EXPECT_EQ(co_await typist.until(kYes), process->state().pid);
}
void tell_of(const Program& program) {
  if (::access(program.argv[0].c_str(), X_OK) != 0) GTEST_SKIP() << "there is no " << program.name;
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers}) {
    Site site(held);
    site.scratch.write("text", std::string(100'000, '\n') + "the end");
    Program here = program;
    for (std::string& argument : here.argv)
      if (argument == "text") argument = site.scratch / "text";
    aio::testing::run(site.loop, waits_for_its_user(site, here));
  }
}
// covers: Y3
TEST(Terminal, SeesThatPythonWaits) {
  tell_of({"python", {"/usr/bin/python3", "-i", "-q"}, ">>> "});
}
// covers: Y3
TEST(Terminal, SeesThatNodeWaits) { tell_of({"node", {"/usr/bin/node", "-i"}, "> "}); }
// covers: Y3
TEST(Terminal, SeesThatAPagerWaits) { tell_of({"less", {"/usr/bin/less", "text"}, "\n"}); }
// covers: Y3
TEST(Terminal, SeesThatAnEditorWaits) {
  tell_of({"vim", {"/usr/bin/vim", "-u", "NONE", "-i", "NONE", "text"}, "text"});
}

// Begins a job that sleeps, and says so when it takes signals: what a shell has just forked still
// has the shell's handlers.
aio::Task<pid_t> put_to_sleep(Typist& typist) {
  typist.enter("sh -c 'echo asleep; exec sleep 1000'");
  co_await typist.see("\r\nasleep\r\n");
  co_return co_await typist.until_a_job();
}

aio::Task<> tells_who_waits(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  const pid_t shell = typist->process().state().pid;
  EXPECT_EQ(co_await typist->until(kYes), shell);

  typist->enter("cat");
  const pid_t reader = co_await typist->until_a_job();
  EXPECT_EQ(co_await typist->until(kYes), reader);
  typist->type("\x04");
  co_await typist->see(std::string(kPrompt));

  const pid_t sleeper = co_await put_to_sleep(*typist);
  EXPECT_NE(sleeper, reader);
  for (int look = 0; look < 5; ++look)
    EXPECT_EQ((co_await typist->foreground())->waiting, kNo) << "it waits for no input";
  typist->enter("typed ahead");
  EXPECT_EQ((co_await typist->foreground())->waiting, kNo);
  EXPECT_TRUE(typist->process().signal_foreground(SIGINT));
  co_await typist->see("typed: command not found");
}
// covers: Y3
TEST(Terminal, TellsWhoIsInTheForegroundAndWhetherItWaits) { tell_both(tells_who_waits); }

aio::Task<> passes_over_the_background(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  typist->enter("cat & echo job $!");
  co_await typist->see("\r\njob ");
  co_await typist->see(std::string(kPrompt));
  // It reads, and is stopped for that.
  typist->enter("while jobs | grep -q Running; do :; done; jobs");
  co_await typist->see("Stopped");
  co_await typist->see(std::string(kPrompt));
  EXPECT_EQ(co_await typist->until(kYes), typist->process().state().pid);
}
// covers: Y3
TEST(Terminal, TakesABackgroundJobThatReadsForNobodyWhoWaits) {
  tell_both(passes_over_the_background);
}

// As the executor is in a sandbox, where a program may be root's.
constexpr uid_t kUser = 1000;
aio::Task<> look_at_root(Site& site, std::string program, int& code) {
  auto process = co_await site.spawn(in_terminal(site, {program, "cat"}));
  if (!process) co_return;
  Typist typist(site, process);
  // What is typed comes back twice once it reads: from the terminal, and from the program.
  typist.enter("once");
  co_await typist.see("once\r\nonce\r\n");
  const auto found = co_await typist.foreground();
  code = found && found->waiting == InputWaiting::kUnknown ? 0 : 1;
  // The terminal asks nobody whether it may send.
  if (!typist.process().signal_foreground(SIGINT)) code = 3;
  EXPECT_TRUE(co_await process->until(Milestone::kExit));
}
// covers: Y2 Y3
TEST(Terminal, DoesNotClaimToKnowWhatAProgramOfRootWaitsFor) {
  if (::geteuid() != 0) GTEST_SKIP() << "it takes root";
  const Scratch scratch;
  const fs::path program = scratch.path() / "become_root", home = scratch.path() / "home";
  fs::copy_file(BECOME_ROOT, program);
  ::chmod(program.c_str(), 04755);
  ::chmod(scratch.path().c_str(), 0755);
  fs::create_directory(home);
  ASSERT_EQ(::chown(home.c_str(), kUser, kUser), 0);
  const testing::Child child = testing::in_a_child([&](base::Fd& in) {
    ::setenv("TMPDIR", home.c_str(), 1);
    if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0) return 2;
    Site site(HeldBy::kReapers);
    int code = 2;
    aio::testing::run(site.loop, look_at_root(site, program.string(), code));
    static_cast<void>(base::write_all(in.get(), "over\n"));
    return code;
  });
  EXPECT_EQ(child.status, 0);
}

aio::Task<> note_passed_on(ProcessInput& input, std::int64_t typed, bool& passed_on) {
  co_await input.wait_to_pass_on(typed);
  passed_on = true;
}
aio::Task<> waits_for_what_is_typed(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  ProcessInput& input = *typist->process().input();
  co_await input.wait_to_pass_on(input.passed_on());
  const std::string line = "echo $((6 * 7))\n";
  const std::int64_t typed = input.arrived() + static_cast<std::int64_t>(line.size());
  bool passed_on = false;
  aio::TaskGroup tasks(site.loop.executor());
  tasks.spawn(note_passed_on(input, typed, passed_on));
  co_await aio::sleep_for(Milliseconds(0));
  EXPECT_FALSE(passed_on) << "it has not come yet";
  typist->type(line);
  co_await tasks.wait();
  EXPECT_TRUE(passed_on);
  EXPECT_EQ(input.passed_on(), typed);
  co_await typist->see("\r\n42\r\n");
}
// covers: Y2
TEST(Terminal, KnowsWhenWhatWasTypedHasReachedIt) { tell_both(waits_for_what_is_typed); }

// Reads what is typed as it is, and tells of each signal and byte.
constexpr const char* kRaw =
    "import os, signal, sys, tty\n"
    "tty.setraw(0)\n"
    "def tell(number, frame): os.write(1, b'signal %d group %d;' % (number, os.getpgrp()))\n"
    "for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):\n"
    "    signal.signal(one, tell)\n"
    "os.write(1, b'begun;')\n"
    "while True: os.write(1, b'byte %d;' % os.read(0, 1)[0])\n";

aio::Task<> signals_whatever_the_mode(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  site.scratch.write("raw", kRaw);
  typist->enter("/usr/bin/python3 " + site.scratch / "raw");
  co_await typist->see("begun;");
  typist->type("\x03");
  co_await typist->see("byte 3;");
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    const auto group = typist->process().signal_foreground(number);
    EXPECT_TRUE(group) << number;
    if (!group) co_return;
    EXPECT_EQ(*group, (co_await typist->foreground())->group);
    co_await typist->see("signal " + std::to_string(number) + " group " + std::to_string(*group));
  }
  const auto killed = typist->process().signal_foreground(SIGKILL);
  EXPECT_TRUE(killed);
  co_await typist->see("Killed");
  EXPECT_EQ(co_await typist->until(kYes), typist->process().state().pid);
}
// covers: Y2
TEST(Terminal, SignalsTheForegroundWhateverItsMode) { tell_both(signals_whatever_the_mode); }

aio::Task<> stops_and_goes_on(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  const pid_t job = co_await put_to_sleep(*typist);
  const auto stopped = typist->process().signal_foreground(SIGTSTP);
  EXPECT_TRUE(stopped && *stopped == job);
  co_await typist->see("Stopped");
  EXPECT_EQ(co_await typist->until(kYes), typist->process().state().pid);
  typist->enter("fg");
  EXPECT_EQ(co_await typist->until_a_job(), job);
  for (int look = 0; look < 5; ++look)
    EXPECT_EQ((co_await typist->foreground())->waiting, kNo) << "it sleeps on";
  EXPECT_TRUE(typist->process().signal_foreground(SIGINT));
  EXPECT_EQ(co_await typist->until(kYes), typist->process().state().pid);
}
// covers: Y2 Y3
TEST(Terminal, StopsAJobThatGoesOnLater) { tell_both(stops_and_goes_on); }

aio::Task<> does_not_kill_the_shell(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  const auto fault_of = [&](int number) {
    const auto sent = typist->process().signal_foreground(number);
    return sent ? std::nullopt : std::optional(sent.error().fault);
  };
  EXPECT_EQ(fault_of(SIGKILL), ProcessFault::kConflict) << "that is what terminate is for";
  for (const int number : {0, SIGSTOP, SIGCONT, SIGUSR1, SIGSEGV, 64, -1})
    EXPECT_EQ(fault_of(number), ProcessFault::kInvalid) << number;
  EXPECT_EQ(fault_of(SIGTERM), std::nullopt) << "which a shell does not mind";
  typist->enter("echo still here");
  co_await typist->see("\r\nstill here");
}
// covers: Y2
TEST(Terminal, DoesNotKillItsOwnShell) { tell_both(does_not_kill_the_shell); }

aio::Task<> keeps_the_last_of_it(Site& site) {
  constexpr std::int64_t kWritten = 6 << 20;
  // Numbers of nine digits and an end of line, eight bytes and two.
  auto request = in_terminal(
      site, {"sh", "-c", "stty -onlcr; echo begun; seq -f %09.0f 0 629144; printf end..; cat"});
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  Typist typist(site, process);
  co_await process->out()->wait_for(0);
  const auto early = process->out()->read(0, 6);
  EXPECT_EQ(early->bytes, "begun\n") << "nothing was lost so far";
  // Nobody reads on, and it comes to its end.
  while (process->state().out->bytes < kWritten) co_await aio::sleep_for(Milliseconds(2));
  co_await typist.until(kYes);
  const OutputState state = *process->state().out;
  EXPECT_EQ(state.bytes, 6 + 6'291'450 + 5);
  EXPECT_TRUE(state.lossy);
  EXPECT_EQ(process->held(), kScrollbackBytesMax);

  const auto lossy = process->out()->read(6, 1 << 20);
  EXPECT_TRUE(lossy->lossy) << "whoever comes back late is told";
  EXPECT_EQ(lossy->begin, state.bytes - kScrollbackBytesMax);
  const auto exact = process->out()->read(state.bytes - 15, 1 << 20);
  EXPECT_FALSE(exact->lossy) << "whoever comes back in time goes on";
  EXPECT_EQ(exact->bytes, "000629144\nend..");
  const auto oldest = process->out()->read(state.bytes - kScrollbackBytesMax, 1);
  EXPECT_FALSE(oldest->lossy);
}
// covers: 4.7 4.8
TEST(Terminal, KeepsTheLastFourMegabytesAndSaysWhatIsLost) { tell_both(keeps_the_last_of_it); }

aio::Task<> holds_its_typist_back(Site& site) {
  auto deaf =
      co_await site.spawn(in_terminal(site, {"sh", "-c", "stty raw; echo begun; kill -STOP $$"}));
  auto typist = co_await sit_down(site);
  if (!deaf || !typist) co_return;
  Typist watcher(site, deaf);
  co_await watcher.see("begun");
  // It takes what the kernel and our window hold, and no more.
  ProcessInput& input = *deaf->input();
  for (std::int64_t room = 1; room > 0;) {
    co_await aio::race(input.wait_to_reach(input.arrived() + 1), aio::sleep_for(Milliseconds(100)));
    room = std::min<std::int64_t>(input.may_reach() - input.arrived(), 64 << 10);
    if (room > 0)
      EXPECT_TRUE(input.put(input.arrived(), std::string(static_cast<std::size_t>(room), 'x')));
  }
  EXPECT_LE(input.arrived(), 1 << 20);
  const auto more = input.put(input.arrived(), "x");
  EXPECT_TRUE(!more && more.error().fault == ProcessFault::kInvalid);
  // Neither is anybody else held back, nor the word that ends it.
  typist->enter("echo $((6 * 7))");
  co_await typist->see("42");
  deaf->terminate(Milliseconds(10'000));
  EXPECT_TRUE(co_await deaf->until(Milestone::kEmpty));
}
// covers: 4.8
TEST(Terminal, HoldsBackWhoTypesWhatNobodyReads) { tell_both(holds_its_typist_back); }

aio::Task<> takes_nothing_after_the_end(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  Subprocess& process = typist->process();
  typist->enter("exit");
  EXPECT_TRUE(co_await process.until(Milestone::kExit));
  const auto fault = [](const auto& result) {
    return result ? std::nullopt : std::optional(result.error().fault);
  };
  ProcessInput& input = *process.input();
  EXPECT_EQ(fault(input.put(input.arrived(), "x")), ProcessFault::kConflict);
  EXPECT_EQ(fault(input.end_at(input.arrived())), ProcessFault::kConflict);
  EXPECT_EQ(fault(process.resize({})), ProcessFault::kConflict);
  EXPECT_EQ(fault(process.signal_foreground(SIGINT)), ProcessFault::kConflict);
  EXPECT_EQ(fault(co_await process.foreground(site.background)), ProcessFault::kConflict);
  co_await input.wait_to_reach(1 << 30);  // Whoever waits for room hears of it.

  const auto piped = co_await site.spawn(site.request({"sleep", "1000"}));
  if (!piped) co_return;
  EXPECT_EQ(fault(piped->resize({})), ProcessFault::kInvalid);
  EXPECT_EQ(fault(piped->signal_foreground(SIGINT)), ProcessFault::kInvalid);
  EXPECT_EQ(fault(co_await piped->foreground(site.background)), ProcessFault::kInvalid);
}
// covers: Y4
TEST(Terminal, TakesNothingAfterTheEnd) { tell_both(takes_nothing_after_the_end); }

aio::Task<> takes_nothing_while_it_is_ended(Site& site) {
  auto request =
      in_terminal(site, {"sh", "-c", "trap '' TERM; echo begun; read -r line; read -r line"});
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  Typist typist(site, process);
  co_await typist.see("begun");
  process->terminate(Milliseconds(60'000));
  const auto typed = process->input()->put(0, "x");
  EXPECT_TRUE(!typed && typed.error().fault == ProcessFault::kConflict);
  EXPECT_FALSE(process->resize({}));
  EXPECT_FALSE(process->signal_foreground(SIGINT));
  EXPECT_FALSE(co_await process->foreground(site.background));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  EXPECT_EQ(process->state().exit, (Exit{.code = std::nullopt, .signal = SIGHUP}))
      << "it ignores SIGTERM";
}
// covers: Y4
TEST(Terminal, TakesNothingWhileItIsEnded) { tell_both(takes_nothing_while_it_is_ended); }

// Everybody has closed it, and somebody opens it again.
aio::Task<> does_not_end_before_its_command(Site& site) {
  auto request = in_terminal(site, {"sh", "-c",
                                    "echo one; exec < /dev/null > " + site.scratch / "out" +
                                        " 2>&1; until [ -e go ]; do :; done; echo two > /dev/tty"});
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  Typist typist(site, process);
  co_await typist.see("one\r\n");
  const fs::path last = "/proc/" + std::to_string(process->state().pid) + "/fd/2";
  while (fs::read_symlink(last) != site.scratch / "out") co_await aio::sleep_for(Milliseconds(2));
  co_await aio::race(process->out()->wait_for_end(), aio::sleep_for(Milliseconds(100)));
  EXPECT_FALSE(process->out()->ended());
  site.scratch.write("go", "");
  co_await typist.see("two\r\n");
  EXPECT_TRUE(co_await process->until(Milestone::kSettled));
}
// covers: Y4
TEST(Terminal, DoesNotEndBeforeItsCommand) { tell_both(does_not_end_before_its_command); }

aio::Task<> is_held_to_a_mode(Site& site) {
  Caller narrow = site.caller;
  narrow.permission = {PermissionMode::kReadOnly, {site.scratch.path().string()}};
  const auto spawned = co_await site.subprocesses.spawn(narrow, shell_in_terminal(site));
  if (!spawned && spawned.error().fault == ProcessFault::kConfinementUnavailable) co_return;
  EXPECT_TRUE(spawned);
  if (!spawned) co_return;
  Typist typist(site, *spawned);
  co_await typist.see(std::string(kPrompt));
  typist.enter("touch file; : > /dev/tty && echo its own");
  co_await typist.see("denied");
  co_await typist.see("\r\nits own");
  EXPECT_EQ(co_await typist.until(kYes), (*spawned)->state().pid);
  EXPECT_TRUE(site.subprocesses.find(site.caller, (*spawned)->request().id));

  const auto wide = co_await site.spawn(shell_in_terminal(site));
  if (!wide) co_return;
  const auto found = site.subprocesses.find(narrow, wide->request().id);
  EXPECT_TRUE(!found && found.error().fault == ProcessFault::kDenied);
}
// covers: 2.6
TEST(Terminal, IsHeldToTheModeOfItsCaller) { tell_both(is_held_to_a_mode); }

aio::Task<> is_lost(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  Subprocess& process = typist->process();
  site.subprocesses.lose_all();
  const auto fault = [](const auto& result) {
    return result ? std::nullopt : std::optional(result.error().fault);
  };
  EXPECT_EQ(fault(process.resize({})), ProcessFault::kLost);
  EXPECT_EQ(fault(process.signal_foreground(SIGINT)), ProcessFault::kLost);
  EXPECT_EQ(fault(process.out()->read(0, 1)), ProcessFault::kLost);
  EXPECT_EQ(fault(site.subprocesses.find(site.caller, process.request().id)), ProcessFault::kLost);
  EXPECT_TRUE(co_await process.join());
  EXPECT_EQ(site.left(), 0u);
}
// covers: 4.7
TEST(Terminal, GoesWithItsIncarnation) { tell_both(is_lost); }

}  // namespace
}  // namespace executor
