// Sandboxes that are left alone: paused or ended for that, and never in the middle of something.

#include <gtest/gtest.h>

#include "controller/testing/world.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

using namespace mortal;  // NOLINT: the words of the lives below.

TEST(CrashTest, WhatIsUsedDoesNotIdle) {  // I-BUSY
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  for (int i = 0; i < 20; ++i) {
    world.pass(15s);
    world.insides().use(world.bound());
  }
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
}

// The last look found it idle; what comes then keeps it from being paused.
TEST(CrashTest, ARequestInTheLastMomentIsNotFrozen) {  // S7
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().use_after_each_look(true);
  world.pass(3min);
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
  EXPECT_EQ(world.life().sandbox()->status.paused_by, api::PausedBy::kNobody);
  EXPECT_FALSE(world.drift().counts.contains("idle pauses")) << "nor said to be";
  world.insides().use_after_each_look(false);
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

// An extension takes longer than a quiesce lasts, and somebody comes then.
TEST(CrashTest, WhatIsUsedAgainBeforeItsPauseIsNotFrozen) {  // S7
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  int hung = 0;
  world.on_call = [&](e2b::Operation operation) {
    const auto paused_by = world.life().sandbox()->status.paused_by;
    if (operation != e2b::Operation::kExtend || paused_by != api::PausedBy::kIdle) return;
    world.hang(3min);
    if (hung++ == 0) world.insides().use(world.bound());
  };
  world.run_until("a try", [&] { return hung > 0; });
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
  world.run_until("Ready again", [&] { return world.ready(); });
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_GE(world.insides().idle_when_paused(), 20s);
}

TEST(CrashTest, NobodyAsksInsideWhatIsPausedForIdleness) {
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  const int visits = world.insides().visits();
  world.forget_events();
  world.restart();
  world.pass(5min);
  EXPECT_EQ(world.insides().visits(), visits);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kConnect), 0u) << "spec.desiredState is Running";
  EXPECT_EQ(world.events(), 0);
}

TEST(CrashTest, ARefusedPauseForIdlenessLetsItGoOn) {  // S7
  World world(Weather{});
  world.cloud().script(e2b::Operation::kPause, {Fault::Kind::kRefused503});
  world.declare("Running", kWakes);
  world.run_until("a try", [&] { return world.cloud().count(e2b::Operation::kPause) == 1; });
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_FALSE(world.insides().quiesced(world.bound()));
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

TEST(CrashTest, WhereNothingCanBePausedWhatIdlesGoesOn) {
  World world(Weather{});
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kFailed500}, 1);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  const base::Moment began = world.now();
  world.run_until("tries", [&] { return world.cloud().count(e2b::Operation::kPause) >= 3; });
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.life().sandbox()->status.paused_by, api::PausedBy::kNobody);
  EXPECT_GE(world.now() - began, 60s) << "no more often than it idles";
}

// Of which nobody knows whether it idles, and who is to do something about that hears it once.
TEST(CrashTest, AnExecutorThatCannotSayWhetherItIdlesIsAskedLessAndLess) {
  World world(Weather{});
  world.insides().be_old(true);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  world.run_until("a try", [&] { return world.insides().looks() == 2; });
  EXPECT_EQ(world.why("Paused"), api::reason::kRunning) << "it may answer yet";
  world.forget_events();
  world.run_until("the news", [&] { return world.why("Paused") == api::reason::kIdlenessUnknown; });
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.pass(14min);
  EXPECT_TRUE(world.ready());
  EXPECT_GE(world.insides().looks(), 5);
  EXPECT_LE(world.insides().looks(), 10) << "each longer after the one before";
  EXPECT_EQ(world.events(), 1);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);

  world.restart();  // That is no news.
  const int before = world.insides().looks();
  world.run_until("more tries", [&] { return world.insides().looks() >= before + 4; });
  EXPECT_EQ(world.events(), 1);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);

  world.insides().be_old(false);
  world.ask_for_a_look();  // A person does not wait for the next try.
  const base::Moment asked = world.now();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_LE(world.now(), asked + 60s);
}

// Else it would be tried every second.
TEST(CrashTest, APauseForIdlenessThatIsRefusedIsTriedLessAndLess) {
  World world(Weather{});
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kFailed500}, 1);
  world.declare("Running", "{idleSeconds: 1, wakeOnAttach: true}");
  world.run_until("the news",
                  [&] { return world.why("Paused") == api::reason::kIdleActionFailed; });
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 1u) << "a refusal is told at once";
  world.pass(14min);
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.why("Paused"), api::reason::kIdleActionFailed);
  EXPECT_GE(world.cloud().count(e2b::Operation::kPause), 4u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kPause), 10u) << "each longer after the one before";
  world.cloud().clear_chances();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

TEST(CrashTest, WhatIdlesMayEndForGood) {
  World world(Weather{});
  world.declare("Running", kEnds);
  world.run_until("Ready", [&] { return world.ready(); });
  world.run_until("an end", [&] { return world.why("Ready") == api::reason::kIdleTimeReached; });
  world.run_until("its proof",
                  [&] { return world.life().sandbox()->status.terminated_time.has_value(); });
  EXPECT_EQ(world.life().sandbox()->status.ended_by, api::EndedBy::kIdle);
  expect_nothing_left(world);
  world.pass(5min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

// It is done, and nobody hears that: an executor that is gone with its sandbox does not answer.
TEST(CrashTest, WhatWasEndedForIdlenessUnheardIsNotLost) {
  World world(Weather{});
  world.cloud().script(e2b::Operation::kKill, {Fault::Kind::kReplyLost});
  world.declare("Running", kEnds);
  world.run_until("its proof", [&] {
    const auto sandbox = world.life().sandbox();
    return sandbox && sandbox->status.terminated_time;
  });
  EXPECT_EQ(world.why("Ready"), api::reason::kIdleTimeReached);
  EXPECT_EQ(world.cloud().total_created(), 1u);
  expect_nothing_left(world);
}

// It stands still when it is asked for the first time, and does not answer right before the call.
void expect_told_at_the_third(World& world, const char* lifecycle, e2b::Operation call) {
  int hung = 0;
  bool hangs = true;
  world.insides().hangs_at_quiesce = [&] {
    const api::SandboxStatus status = world.life().sandbox()->status;
    const bool on_record =
        status.paused_by == api::PausedBy::kIdle || status.ended_by == api::EndedBy::kIdle;
    if (on_record && hangs) ++hung;
    return on_record && hangs;
  };
  world.declare("Running", lifecycle);
  world.run_until("the second try", [&] { return hung == 2; });
  world.run_until("Ready again", [&] { return world.ready(); });
  EXPECT_EQ(world.why("Paused"), api::reason::kRunning) << "it may answer yet";
  world.run_until("the news", [&] { return world.why("Paused") == api::reason::kIdlenessUnknown; });
  EXPECT_EQ(hung, 3);
  EXPECT_EQ(world.cloud().count(call), 0u);
  hangs = false;
  world.run_until("its call", [&] { return world.cloud().count(call) == 1; });
}

TEST(CrashTest, AnExecutorThatHangsRightBeforeAPauseIsToldOfAtTheThirdTime) {
  World world(Weather{});
  expect_told_at_the_third(world, kWakes, e2b::Operation::kPause);
}

TEST(CrashTest, AnExecutorThatHangsRightBeforeAnEndIsToldOfAtTheThirdTime) {
  World world(Weather{});
  expect_told_at_the_third(world, kEnds, e2b::Operation::kKill);
}

TEST(CrashTest, ARequestInTheLastMomentIsNotEnded) {
  World world(Weather{});
  world.declare("Running", kEnds);
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().use_after_each_look(true);
  world.pass(2min);
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.life().sandbox()->status.ended_by, api::EndedBy::kNobody);
}

}  // namespace
}  // namespace controller
