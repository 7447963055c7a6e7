#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "executor/subprocess/testing/site.h"
#include "executor/subprocess/testing/typist.h"
#include "libs/base/testing/eventually.h"

// What of a terminal nothing may outlive. Each scene is seen to leak where a mechanism is missing.
namespace executor {
namespace {

using base::Milliseconds;
using testing::HeldBy;
using testing::sit_down;
using testing::Site;
using testing::tell_both;

struct Scene {
  const char* name;
  const char* line;  // What is entered at a shell.
  std::size_t left;  // Where only the shell's own process group is killed.
};
void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

constexpr const char* kDeaf = "(trap '' TERM HUP; exec sleep 1000) & ";
const Scene kScenes[] = {
    {"job", "(trap '' TERM HUP; exec sleep 1000) &", 1},
    {"jobs", "for n in 1 2 3; do (trap '' TERM HUP; exec sleep 1000) & done", 3},
    {"stopped_job", "(trap '' TERM HUP; kill -STOP $BASHPID; exec sleep 1000) &", 1},
    {"session_of_its_own", "(trap '' TERM HUP; setsid sleep 1000 &)", 1},
    {"left_twice", "(trap '' TERM HUP; setsid sh -c 'setsid sleep 1000 & exit 0' & )", 1},
    {"nohup", "(trap '' TERM; nohup sleep 1000 > /dev/null 2>&1 &)", 1},
};

class LeakOfATerminal : public ::testing::TestWithParam<std::tuple<HeldBy, Scene, bool>> {};

// How many are left when the shell was ended, or ended by itself.
aio::Task<> play(Site& site, Scene scene, bool by_itself, bool& proven, std::size_t& left) {
  auto typist = co_await sit_down(site, 50);
  if (!typist) co_return;
  Subprocess& process = typist->process();
  typist->enter(scene.line);
  while (site.left() < 1 + scene.left) co_await aio::sleep_for(Milliseconds(2));
  // What ignores signals does so before it is counted only if it has come so far.
  const auto settled = [&] {
    const auto found = testing::marked(site.mark);
    return std::count_if(found.begin(), found.end(), [](pid_t pid) {
             const auto name = base::read_file("/proc/" + std::to_string(pid) + "/comm");
             const auto facts = base::look_at_process(pid);
             return (name && *name == "sleep\n") || (facts && facts->state == 'T');
           }) == static_cast<std::ptrdiff_t>(scene.left);
  };
  while (!settled() || site.left() != 1 + scene.left) co_await aio::sleep_for(Milliseconds(2));
  if (by_itself)
    typist->enter("exit\nexit");  // The second time in spite of stopped jobs.
  else
    process.terminate(Milliseconds(50));
  const auto emptied = co_await process.until(Milestone::kEmpty);
  if (!emptied) EXPECT_EQ(emptied.error().fault, ProcessFault::kTerminateFailed);
  proven = emptied.ok();
  left = site.left();
}

// covers: Y4 T7
TEST_P(LeakOfATerminal, NothingOutlivesIt) {
  const auto& [held, scene, by_itself] = GetParam();
  for (const bool whole : {false, true}) {
    Site site(held, {.killed_within = Milliseconds(whole ? 10'000 : 300)});
    site.mechanisms->kill_of_the_tree = whole;
    bool proven = false;
    std::size_t left = 0;
    aio::testing::run(site.loop, play(site, scene, by_itself, proven, left));
    EXPECT_EQ(proven, whole) << "a kill is no proof";
    EXPECT_EQ(left, whole ? 0 : scene.left);
    EXPECT_TRUE(testing::end_marked(site.mark));
  }
}
INSTANTIATE_TEST_SUITE_P(Scenes, LeakOfATerminal,
                         ::testing::Combine(::testing::Values(HeldBy::kGroups, HeldBy::kReapers),
                                            ::testing::ValuesIn(kScenes), ::testing::Bool()),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) == HeldBy::kGroups
                                                  ? "groups_"
                                                  : "reapers_") +
                                  std::get<1>(one.param).name +
                                  (std::get<2>(one.param) ? "_left" : "_ended");
                         });

// The grace is for who has something to finish.
aio::Task<> ends_an_idle_shell_at_once(Site& site) {
  const auto typist = co_await sit_down(site);
  if (!typist) co_return;
  const auto begun = std::chrono::steady_clock::now();
  typist->process().terminate(Milliseconds(60'000));
  EXPECT_TRUE(co_await typist->process().until(Milestone::kEmpty));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  EXPECT_EQ(typist->process().state().exit, (Exit{.code = std::nullopt, .signal = SIGHUP}));
}
// covers: Y4
TEST(TerminalEnd, HangsUpAShellThatIgnoresToBeEnded) { tell_both(ends_an_idle_shell_at_once); }

aio::Task<> lets_a_stopped_job_finish(Site& site) {
  auto typist = co_await sit_down(site);
  if (!typist) co_return;
  typist->enter("sh -c 'trap \"echo done > finished; exit\" TERM; kill -STOP $$; :'");
  co_await typist->see("Stopped");
  co_await typist->until(InputWaiting::kYes);
  typist->process().terminate(Milliseconds(60'000));
  EXPECT_TRUE(co_await typist->process().until(Milestone::kEmpty));
  EXPECT_TRUE(std::filesystem::exists(site.scratch / "finished"));
}
// covers: Y4
TEST(TerminalEnd, LetsAStoppedJobFinish) { tell_both(lets_a_stopped_job_finish); }

// A chain that forks on until its file is gone.
aio::Task<> catches_a_chain(Site& site) {
  auto typist = co_await sit_down(site, 100);
  if (!typist) co_return;
  site.scratch.write("chain", "#!/bin/sh\ntrap '' TERM HUP\n[ -e chain ] && setsid sh ./chain &\n");
  typist->enter("sh ./chain; exit");
  EXPECT_TRUE(co_await typist->process().until(Milestone::kExit));
  EXPECT_TRUE(co_await typist->process().until(Milestone::kEmpty));
  EXPECT_EQ(site.left(), 0u);
}
// covers: Y4 T7
TEST(TerminalEnd, CatchesAChainThatForksOn) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers})
    aio::testing::tell<Site>(catches_a_chain, held,
                             SubprocessLimits{.killed_within = Milliseconds(30'000)});
}

aio::Task<> goes_with_its_session(Site& site) {
  auto typist = co_await sit_down(site, 100);
  if (!typist) co_return;
  typist->enter(kDeaf);
  while (site.left() < 2) co_await aio::sleep_for(Milliseconds(2));
  EXPECT_TRUE(co_await site.subprocesses.end_session(site.caller.session));
  EXPECT_EQ(site.left(), 0u);
  EXPECT_TRUE(site.subprocesses.list(site.caller, "", 10).empty());
}
// covers: Y4 W5
TEST(TerminalEnd, ComesWithThatOfItsSession) { tell_both(goes_with_its_session); }

}  // namespace
}  // namespace executor
