#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "executor/subprocess/testing/child.h"
#include "executor/subprocess/testing/site.h"
#include "libs/base/testing/eventually.h"

// What nothing may outlive. Each scene is played twice: with a mechanism switched off, when it must
// be seen to leak, and with all of them, when nothing is left.
namespace executor {
namespace {

namespace fs = std::filesystem;
using base::Milliseconds;
using testing::Child;
using testing::HeldBy;
using testing::in_a_child;
using testing::Mechanisms;
using testing::Site;

// Ignored signals stay ignored in whatever is executed afterwards.
struct Scene {
  const char* name;
  const char* script;
  std::size_t sleeping;  // How many of its programs sleep when it is ready.
  bool in_one_group = false;
};
void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

const Scene kScenes[] = {
    {"ignores_term", "trap '' TERM; sleep 1000; :", 1, true},
    {"session_of_its_own", "trap '' TERM; setsid sleep 1000 & wait", 1},
    {"double_fork", "trap '' TERM; (setsid sh -c 'sleep 1000 & sleep 1000 &'); sleep 1000; :", 3},
    {"left_by_its_command", "trap '' TERM; setsid sleep 1000 & exit 0", 1},
    {"left_twice", "trap '' TERM; setsid sh -c 'setsid sleep 1000 & exit 0' & exit 0", 1},
    {"deep", "trap '' TERM; sh -c 'setsid sh -c \"setsid sleep 1000; :\"; :'; :", 1},
};

bool sleeps(pid_t pid) {
  const auto name = base::read_file("/proc/" + std::to_string(pid) + "/comm");
  return name && *name == "sleep\n";
}

aio::Task<> until_sleeping(Site& site, std::size_t count) {
  for (;;) {
    const auto found = testing::marked(site.mark);
    if (static_cast<std::size_t>(std::count_if(found.begin(), found.end(), sleeps)) >= count)
      co_return;
    co_await aio::sleep_for(Milliseconds(5));
  }
}

// How many are left when the tree was asked to end, and was said to have or not to have ended.
aio::Task<> play(Site& site, Scene scene, bool& proven, std::size_t& left) {
  auto request = site.shell(scene.script);
  request.grace_ms = 50;
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  co_await until_sleeping(site, scene.sleeping);
  process->terminate(Milliseconds(50));
  const auto emptied = co_await process->until(Milestone::kEmpty);
  if (!emptied) EXPECT_EQ(emptied.error().fault, ProcessFault::kTerminateFailed);
  proven = emptied.ok();
  left = site.left();
}

struct Outcome {
  bool proven = false;
  std::size_t left = 0;
};

Outcome outcome_of(HeldBy held, const Scene& scene, Mechanisms mechanisms) {
  Outcome outcome;
  Site site(held, {.killed_within = Milliseconds(mechanisms.kill_of_the_tree ? 10'000 : 300)});
  *site.mechanisms = mechanisms;
  aio::testing::run(site.loop, play(site, scene, outcome.proven, outcome.left));
  EXPECT_TRUE(testing::end_marked(site.mark));
  return outcome;
}

class LeakOfAScene : public ::testing::TestWithParam<std::tuple<HeldBy, Scene>> {
 protected:
  Outcome play_with(Mechanisms mechanisms) const {
    return outcome_of(std::get<0>(GetParam()), std::get<1>(GetParam()), mechanisms);
  }
};

// covers: T7
TEST_P(LeakOfAScene, NothingOutlivesTheProof) {
  const Outcome whole = play_with({});
  EXPECT_TRUE(whole.proven);
  EXPECT_EQ(whole.left, 0u);
}

// Without the kill of the tree: only the process group is, as a plain kill would do it.
// covers: T7
TEST_P(LeakOfAScene, IsSeenWithoutTheKillOfTheTreeAndNeverSaidToHaveEnded) {
  const Outcome robbed = play_with({.kill_of_the_tree = false});
  const bool enough = std::get<1>(GetParam()).in_one_group;
  EXPECT_EQ(robbed.left == 0, enough);
  EXPECT_EQ(robbed.proven, enough) << "a kill is no proof";
}

INSTANTIATE_TEST_SUITE_P(Scenes, LeakOfAScene,
                         ::testing::Combine(::testing::Values(HeldBy::kGroups, HeldBy::kReapers),
                                            ::testing::ValuesIn(kScenes)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) == HeldBy::kGroups
                                                  ? "groups_"
                                                  : "reapers_") +
                                  std::get<1>(one.param).name;
                         });

// The end of the command is not the end of the tree, and does not end the escalation.
aio::Task<> believe_the_exit(Site& site) {
  site.mechanisms->proof = false;
  const auto process = co_await site.spawn(site.shell("trap '' TERM; setsid sleep 1000 & exit 0"));
  if (!process) co_return;
  co_await until_sleeping(site, 1);
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty)) << "it is said to have ended";
  EXPECT_EQ(site.left(), 1u) << "while somebody lives";
}
// covers: T2
TEST(Leak, IsSeenWhereTheEndOfTheCommandIsBelieved) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers})
    aio::testing::tell<Site>(believe_the_exit, held);
}

// A program that is somebody else at every look: it forks, leaves its session and ends, on and on.
aio::Task<> hop(Site& site, bool& proven, std::size_t& left) {
  site.scratch.write("hop", "#!/bin/sh\ntrap '' TERM\nsetsid \"$0\" &\n");
  ::chmod((site.scratch / "hop").c_str(), 0755);
  auto request = site.request({site.scratch / "hop"});
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  EXPECT_TRUE(co_await process->until(Milestone::kExit));
  process->terminate(Milliseconds(20));
  proven = (co_await process->until(Milestone::kEmpty)).ok();
  left = site.left();
}
// covers: T7
TEST(Leak, AHoppingChainIsCaught) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers}) {
    for (const bool whole : {false, true}) {
      Site site(held, {.killed_within = Milliseconds(whole ? 30'000 : 300)});
      site.mechanisms->kill_of_the_tree = whole;
      bool proven = false;
      std::size_t left = 0;
      aio::testing::run(site.loop, hop(site, proven, left));
      EXPECT_EQ(proven, whole);
      if (whole) EXPECT_EQ(left, 0u);
      site.mechanisms->kill_of_the_tree = true;
      fs::remove(site.scratch.path() / "hop");  // A chain that was let go ends by that.
      EXPECT_TRUE(testing::end_marked(site.mark));
    }
  }
}

aio::Task<> is_retried(Site& site) {
  auto request = site.shell("trap '' TERM; setsid sleep 1000 & wait");
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  co_await until_sleeping(site, 1);
  site.mechanisms->kill_of_the_tree = false;
  process->terminate(Milliseconds(10));
  const auto failed = co_await process->until(Milestone::kEmpty);
  EXPECT_TRUE(!failed && failed.error().fault == ProcessFault::kTerminateFailed);
  EXPECT_EQ(site.left(), 1u);
  site.mechanisms->kill_of_the_tree = true;
  process->terminate(Milliseconds(10'000));
  EXPECT_TRUE(co_await process->until(Milestone::kEmpty));
  EXPECT_EQ(site.left(), 0u);
}
// covers: T4
TEST(Leak, AFailedEndSurfacesAndIsRetried) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers})
    aio::testing::tell<Site>(is_retried, held,
                             SubprocessLimits{.killed_within = Milliseconds(300)});
}

aio::Task<> joins(Site& site) {
  const char* const stubborn = "trap '' TERM; setsid sleep 1000 & wait";
  std::vector<std::shared_ptr<Subprocess>> its;
  for (int number = 0; number < 3; ++number) {
    auto request = site.shell(stubborn);
    request.grace_ms = 20;
    its.push_back(co_await site.spawn(request));
  }
  Caller other{"session-2", site.caller.permission};
  const auto others = co_await site.subprocesses.spawn(other, site.request({"sleep", "1000"}));
  EXPECT_TRUE(others);
  co_await until_sleeping(site, 4);
  site.mechanisms->kill_of_the_tree = false;
  const auto failed = co_await site.subprocesses.end_session(site.caller.session);
  EXPECT_TRUE(!failed && failed.error().fault == ProcessFault::kTerminateFailed);
  EXPECT_GT(site.left(), 1u);
  EXPECT_EQ(site.subprocesses.list(site.caller, "", 10).size(), 4u) << "none is forgotten";
  site.mechanisms->kill_of_the_tree = true;
  const auto joined = co_await site.subprocesses.end_session(site.caller.session);
  EXPECT_TRUE(joined) << (joined ? "" : joined.error().message);
  EXPECT_EQ(site.left(), 1u) << "that of the other session goes on";
  EXPECT_EQ(site.subprocesses.list(site.caller, "", 10).size(), 1u);
}
// covers: W5 T6
TEST(Leak, TheEndOfASessionJoinsAllThatItStarted) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers})
    aio::testing::tell<Site>(joins, held, SubprocessLimits{.killed_within = Milliseconds(300)});
}

aio::Task<> leave_running(Site& site) {
  const auto process = co_await site.spawn(site.shell("trap '' TERM; setsid sleep 1000 & wait"));
  if (process) co_await until_sleeping(site, 1);
}

// covers: W5
TEST(Leak, WhatRunsEndsWithItsOwner) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers}) {
    const base::TemporaryCgroup cgroup;
    for (const bool whole : {false, true}) {
      std::string mark;
      {
        Site site(held, {}, cgroup.path());
        *site.mechanisms = {.kill_of_the_tree = whole, .end_with_us = whole};
        aio::testing::run(site.loop, leave_running(site));
        mark = site.mark;
      }
      if (!whole) EXPECT_EQ(testing::marked(mark).size(), 1u) << "in a session of its own";
      const auto all_ended = [&] { return testing::marked(mark).empty(); };
      EXPECT_TRUE(whole ? base::eventually(all_ended) : testing::end_marked(mark));
    }
  }
}

aio::Task<> keep_ended(Site& site, std::optional<ProcessResult<base::Done>>& ended) {
  ended.emplace(co_await site.subprocesses.end_session(site.caller.session));
}
aio::Task<> starts_nothing_more(Site& site) {
  auto request = site.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  request.grace_ms = 200;
  const auto process = co_await site.spawn(request);
  if (!process) co_return;
  co_await process->out()->wait_for(0);
  aio::TaskGroup tasks(site.loop.executor());
  std::optional<ProcessResult<base::Done>> ended;
  tasks.spawn(keep_ended(site, ended));
  co_await aio::sleep_for(Milliseconds(0));
  const auto late = co_await site.subprocesses.spawn(site.caller, site.request({"sleep", "1000"}));
  EXPECT_TRUE(!late && late.error().fault == ProcessFault::kBusy);
  co_await tasks.wait();
  EXPECT_TRUE(ended && *ended);
  EXPECT_EQ(site.left(), 0u);
}
// covers: T6
TEST(Leak, ASessionThatEndsStartsNothingMore) {
  aio::testing::tell<Site>(starts_nothing_more, HeldBy::kGroups);
}

aio::Task<> is_being_ended(Site& site, aio::TaskGroup& tasks,
                           std::optional<ProcessResult<base::Done>>& ended) {
  const auto process = co_await site.spawn(site.shell("trap '' TERM; while :; do :; done"));
  if (!process) co_return;
  tasks.spawn(keep_ended(site, ended));
  co_await aio::sleep_for(Milliseconds(0));
}
// covers: T6
TEST(Leak, WhoWaitsForTheEndOfASessionMayBeToldLast) {
  std::optional<ProcessResult<base::Done>> ended;
  Site site(HeldBy::kReapers);
  auto tasks = std::make_unique<aio::TaskGroup>(site.loop.executor());
  aio::testing::run(site.loop, is_being_ended(site, *tasks, ended));
  tasks.reset();  // Whose waiting ends only with the loop, after the subprocesses.
  EXPECT_FALSE(ended);
}

aio::Task<ProcessResult<std::string>> never_comes(aio::Executor executor) {
  aio::Condition arrived(std::move(executor));
  co_await arrived.wait();
  co_return std::string();
}
aio::Task<> begin_in_vain(Site& site) {
  static_cast<void>(co_await site.subprocesses.spawn(site.caller, site.shell("true"),
                                                     never_comes(site.loop.executor())));
}
aio::Task<> is_being_begun(Site& site, aio::TaskGroup& tasks) {
  tasks.spawn(begin_in_vain(site));
  co_await aio::sleep_for(Milliseconds(0));
}
// covers: T5
TEST(Leak, WhoWaitsForABeginningMayBeToldLast) {
  Site site(HeldBy::kReapers);
  auto tasks = std::make_unique<aio::TaskGroup>(site.loop.executor());
  aio::testing::run(site.loop, is_being_begun(site, *tasks));
  tasks.reset();
}

// Whoever kills the process that watches over a tree gains no false proof by it.
aio::Task<> the_reaper_is_killed(Site& site) {
  const auto process = co_await site.spawn(site.shell("trap '' TERM; setsid sleep 1000 & wait"));
  if (!process) co_return;
  co_await until_sleeping(site, 1);
  const auto command = base::look_at_process(process->state().pid);
  EXPECT_TRUE(command);
  if (!command) co_return;
  ::kill(command->parent, SIGKILL);
  const auto emptied = co_await process->until(Milestone::kEmpty);
  EXPECT_TRUE(!emptied && emptied.error().fault == ProcessFault::kTerminateFailed);
  while (base::runs(command->pid)) co_await aio::sleep_for(Milliseconds(5));  // With its parent.
  process->terminate(Milliseconds(1));
  EXPECT_FALSE(co_await process->until(Milestone::kEmpty)) << "that can never be proven any more";
}
// covers: T4
TEST(Leak, AReaperThatWasKilledProvesNothing) {
  Site site(HeldBy::kReapers);
  aio::testing::run(site.loop, the_reaper_is_killed(site));
  EXPECT_TRUE(testing::end_marked(site.mark));
}

// When we die without a word. Somebody may be left who holds open what we held.
aio::Task<> begin_and_die(Site& site, base::Fd& in, bool held_open) {
  co_await site.spawn(site.shell("trap '' TERM; setsid sleep 1000 & wait"));
  co_await until_sleeping(site, 1);
  const pid_t holder = held_open ? ::fork() : 0;
  if (held_open && holder == 0) {
    for (;;) ::pause();
  }
  static_cast<void>(base::write_all(in.get(), site.mark + " " + std::to_string(holder) + "\n"));
  ::kill(::getpid(), SIGKILL);
}

struct Left {
  std::string mark;
  pid_t holder = 0;
};
Left after_our_death(HeldBy held, const fs::path& groups, bool held_open) {
  const Scratch scratch;
  const Child child = in_a_child([&](base::Fd& in) {
    ::setenv("TMPDIR", scratch.path().c_str(), 1);
    Site site(held, {}, groups);
    aio::testing::run(site.loop, begin_and_die(site, in, held_open));
    return 1;
  });
  EXPECT_TRUE(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
  const auto words = base::split(child.said, ' ');
  EXPECT_EQ(words.size(), 2u) << child.said;
  if (words.size() != 2) return {};
  return {words[0], static_cast<pid_t>(base::parse_integer(words[1]).value_or(0))};
}

// covers: W4 4.7
TEST(Leak, AReaperKillsItsTreeWhenWeAreGone) {
  const Left robbed = after_our_death(HeldBy::kReapers, {}, true);
  EXPECT_EQ(testing::marked(robbed.mark).size(), 2u) << "its line to us has not ended";
  ASSERT_GT(robbed.holder, 1);
  ::kill(robbed.holder, SIGKILL);
  EXPECT_TRUE(base::eventually([&] { return testing::marked(robbed.mark).empty(); }));

  const Left left = after_our_death(HeldBy::kReapers, {}, false);
  EXPECT_TRUE(base::eventually([&] { return testing::marked(left.mark).empty(); }));
}

// covers: W4 4.7
TEST(Leak, WhatAnEarlierLifeLeftInItsGroupsIsKilled) {
  const base::TemporaryCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  const Left left = after_our_death(HeldBy::kGroups, cgroup.path(), false);
  EXPECT_EQ(testing::marked(left.mark).size(), 2u) << "nobody has ended them so far";
  aio::Loop loop;
  const auto next_life = contain_by_groups(loop.executor(), Groups(cgroup.path()));
  EXPECT_TRUE(base::eventually([&] { return testing::marked(left.mark).empty(); }));
}

// A command may make groups for somebody who never comes. Two tend them here, each every second, as
// the commands of harnesses and the searches do.
TEST(Leak, AbandonedGroupsAreLookedForOnceAMinuteHoweverManyTendThem) {
  const base::TemporaryCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  aio::Loop loop;
  const auto containments = contain_by_groups(loop.executor(), Groups(cgroup.path()));
  const base::Moment start{base::Seconds(1'000)};
  containments->tend(start);
  const fs::path group = *Groups(cgroup.path()).make();
  fs::create_directory(group / "inner");
  for (base::Moment now = start; now < start + base::Seconds(60); now += base::Seconds(1))
    for (int caller = 0; caller < 2; ++caller) containments->tend(now);
  EXPECT_TRUE(fs::exists(group / "inner"));
  containments->tend(start + base::Seconds(60));
  EXPECT_FALSE(fs::exists(group));
}

// As the executor is in a sandbox: another user than root, in a group that is its own to divide.
constexpr uid_t kUser = 1000;

class BecameRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || cgroup_.path().empty())
      GTEST_SKIP() << "it takes root and a cgroup2 folder";
    fs::copy_file(BECOME_ROOT, program_);
    ::chmod(program_.c_str(), 04755);
    ::chmod(scratch_.path().c_str(), 0755);
    fs::create_directory(home_);
    for (const fs::path& given : {home_, cgroup_.path(), cgroup_.path() / "cgroup.procs"})
      ASSERT_EQ(::chown(given.c_str(), kUser, kUser), 0);
  }

  // The exit code of a program that is held so, 0: its end was proven, 1: it was not.
  Child play(HeldBy held) const {
    return in_a_child([&](base::Fd& in) {
      ::setenv("TMPDIR", home_.c_str(), 1);
      if (!base::write_setting(cgroup_.path() / "cgroup.procs", "0") ||
          ::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0)
        return 2;
      Site site(held, {.killed_within = Milliseconds(held == HeldBy::kGroups ? 10'000 : 300)},
                cgroup_.path());
      static_cast<void>(base::write_all(in.get(), site.mark + "\n"));
      int code = 2;
      aio::testing::run(site.loop, end_one(site, program_.string(), code));
      return code;
    });
  }

  static aio::Task<> end_one(Site& site, std::string program, int& code) {
    const auto process = co_await site.spawn(
        site.request({"sh", "-c", "trap '' TERM; " + program + " sleep 1000 & wait"}));
    if (!process) co_return;
    const auto its = [&] {
      for (const auto& one : base::entries_of("/proc")) {
        const auto pid = base::parse_integer(one.filename().string());
        const auto facts = pid ? base::look_at_process(static_cast<pid_t>(*pid)) : std::nullopt;
        if (facts && facts->parent == process->state().pid && sleeps(facts->pid)) return true;
      }
      return false;
    };
    while (!its()) co_await aio::sleep_for(Milliseconds(5));
    process->terminate(Milliseconds(50));
    const auto emptied = co_await process->until(Milestone::kEmpty);
    if (!emptied) EXPECT_EQ(emptied.error().fault, ProcessFault::kTerminateFailed);
    code = emptied ? 0 : 1;
  }

  const base::TemporaryCgroup cgroup_;
  const Scratch scratch_;
  const fs::path program_ = scratch_.path() / "become_root", home_ = scratch_.path() / "home";
};

// covers: T7
TEST_F(BecameRoot, IsEndedByItsGroup) {
  const Child child = play(HeldBy::kGroups);
  EXPECT_EQ(child.status, 0);
  EXPECT_TRUE(testing::marked(child.said).empty());
}

// covers: T7
TEST_F(BecameRoot, IsBeyondAReaperWhichThenClaimsNoProof) {
  const Child child = play(HeldBy::kReapers);
  ASSERT_TRUE(WIFEXITED(child.status));
  EXPECT_EQ(WEXITSTATUS(child.status), 1);
  EXPECT_FALSE(testing::marked(child.said).empty());
  EXPECT_TRUE(testing::end_marked(child.said));
}

}  // namespace
}  // namespace executor
