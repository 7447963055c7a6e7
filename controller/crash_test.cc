// Kills the controller between any two of its steps, alone or with the power of its machine.
// Whatever the step, the life of a Sandbox must come out the same.

#include <gtest/gtest.h>

#include "controller/testing/world.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

using namespace mortal;  // NOLINT: the words of the lives below.

// Create, bind, prepare, pause, resume, delete, dying once at the planned step.
int live_a_life(World& world, Plan plan) {
  world.fate().plan(plan);
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  EXPECT_EQ(world.bound(), id) << "a crash is no reason for another sandbox";
  EXPECT_GE(world.insides().marker(id).run, 2) << "the executor was not told of its run";
  EXPECT_EQ(world.insides().marker(id).incarnation, 1) << "nothing was lost";
  EXPECT_FALSE(world.insides().quiesced(id));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

// Is left alone, paused for that, left alone again, and woken by whoever wants in; dying once at
// the planned step.
int live_an_idle_life(World& world, Plan plan) {
  world.fate().plan(plan);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  EXPECT_GE(world.insides().idle_when_paused(), 20s) << "it was frozen in the middle of something";
  world.pass(40s);
  EXPECT_EQ(world.why("Ready"), api::reason::kIdle) << "nobody wants anything of it";
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  world.run_until("Ready again", [&] {
    world.attach();
    return world.ready();
  });
  EXPECT_EQ(world.bound(), id);
  EXPECT_GE(world.insides().marker(id).run, 2);
  EXPECT_EQ(world.insides().marker(id).incarnation, 1) << "nothing was lost";
  EXPECT_FALSE(world.insides().quiesced(id));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

// Is left alone, and ended for that; dying once at the planned step. Whatever has lapsed until it
// lives again, a harness is there then, and at work for as long as it may.
int live_to_an_idle_end(World& world, Plan plan) {
  world.fate().plan(plan);
  world.after_a_crash = [&world] {
    world.hang(3min);
    for (const auto& sandbox : world.cloud().live()) world.insides().use(sandbox.id);
  };
  world.declare("Running", kEnds);
  world.run_until("an end", [&] {
    const auto sandbox = world.life().sandbox();
    return sandbox && sandbox->status.terminated_time;
  });
  EXPECT_EQ(world.why("Ready"), api::reason::kIdleTimeReached);
  EXPECT_GE(world.insides().idle_when_ended(), 20s) << "it was killed in the middle of something";
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

constexpr std::size_t kShards = 8;
constexpr int kStepsMin = 25;  // Of every life; heartbeats come by chance, and may add a few.
class CrashAnywhere : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashAnywhere, ComesOutTheSame) {  // I-ONE, I-RESYNC, I-DELRACE, M4
  World untouched(Weather{});
  const int steps = live_a_life(untouched, {});
  EXPECT_GE(steps, kStepsMin);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_a_life(world, {at, after});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashAnywhere, testing::Range<std::size_t>(0, kShards));

class CrashWhileItIdles : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashWhileItIdles, ComesOutTheSame) {  // I-RESYNC, S7
  World untouched(Weather{});
  const int steps = live_an_idle_life(untouched, {});
  EXPECT_GE(steps, kStepsMin);
  EXPECT_EQ(untouched.drift().counts.at("idle pauses"), 1);
  EXPECT_EQ(untouched.drift().counts.at("wakes"), 1);
  EXPECT_EQ(untouched.cloud().count(e2b::Operation::kConnect), 1u);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_an_idle_life(world, {at, after});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashWhileItIdles, testing::Range<std::size_t>(0, kShards));

class CrashBeforeItsIdleEnd : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashBeforeItsIdleEnd, EndsNothingThatWorks) {  // I-RESYNC, S7
  World untouched(Weather{});
  const int steps = live_to_an_idle_end(untouched, {});
  EXPECT_EQ(untouched.cloud().count(e2b::Operation::kKill), 1u);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_to_an_idle_end(world, {at, after});
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashBeforeItsIdleEnd, testing::Range<std::size_t>(0, kShards));

class IdlesInBadWeather : public testing::TestWithParam<std::uint64_t> {};

TEST_P(IdlesInBadWeather, ComesOutTheSame) {  // S7
  for (int at = static_cast<int>(GetParam()); at <= 32; at += 8) {
    SCOPED_TRACE("seed " + std::to_string(300 + at) + ", dying at step " + std::to_string(at));
    World world(Weather{.seed = 300 + static_cast<std::uint64_t>(at)});
    live_an_idle_life(world, {at, at % 2 == 0});
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(, IdlesInBadWeather, testing::Range<std::uint64_t>(1, 9));

// As above, where it is ended for good.
class EndsIdleInBadWeather : public testing::TestWithParam<std::uint64_t> {};

TEST_P(EndsIdleInBadWeather, ComesOutTheSame) {  // S7
  for (int at = static_cast<int>(GetParam()); at <= 32; at += 8) {
    SCOPED_TRACE("seed " + std::to_string(400 + at) + ", dying at step " + std::to_string(at));
    World world(Weather{.seed = 400 + static_cast<std::uint64_t>(at)});
    live_to_an_idle_end(world, {at, at % 2 == 0});
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(, EndsIdleInBadWeather, testing::Range<std::uint64_t>(1, 9));

// A bind need not be synced before what follows it: the E2B sandbox is found by its attempt.
class PowerLossAnywhere : public testing::TestWithParam<std::size_t> {};

TEST_P(PowerLossAnywhere, ComesOutTheSame) {  // I-BIND, I-INTENT, I-ONE
  World untouched(Weather{});
  const int steps = live_a_life(untouched, {});
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE("power loss " + std::to_string(seed) + " after step " + std::to_string(at));
      World world(Weather{});
      live_a_life(world, {at, true, seed});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
      EXPECT_EQ(world.cloud().total_created(), 1u) << "what is on record is found again";
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, PowerLossAnywhere, testing::Range<std::size_t>(0, kShards));

TEST(CrashTest, ABindThatAPowerLossTakesIsMadeAgain) {  // I-BIND
  World world(Weather{});
  world.declare("Running");
  world.run_until("bound", [&] { return !world.bound().empty(); });
  const std::string id = world.bound();
  EXPECT_TRUE(world.loses_the_binding()) << "it is synced with the next write";
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

class CrashInBadWeather : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CrashInBadWeather, ComesOutTheSame) {  // I-AMBIG, I-DEL, I-HBFAIL
  for (int at = static_cast<int>(GetParam()); at <= 60; at += 8) {
    SCOPED_TRACE("seed " + std::to_string(100 + at) + ", dying at step " + std::to_string(at));
    World world(Weather{.seed = 100 + static_cast<std::uint64_t>(at)});
    live_a_life(world, {at, at % 2 == 0});
    world.pass(10min);
    EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashInBadWeather, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace controller
