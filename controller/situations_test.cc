// Situations that a life may come to, whole or after a crash, and what becomes of it.

#include <gtest/gtest.h>

#include "controller/testing/world.h"
#include "libs/api/reasons.h"
#include "libs/base/log.h"

namespace controller {
namespace {

using namespace mortal;  // NOLINT: the words of the lives below.

// A test that cannot fail proves nothing: without the settling time a late create must be seen.
TEST(CrashTest, NoticesASecondSandboxWhenNothingSettles) {
  World world(Weather{.settle_seconds = 5});
  world.cloud().script(e2b::Operation::kCreate, {Fault::Kind::kLate, 30s});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(1min);
  EXPECT_FALSE(world.cloud().violations().empty());
  world.pass(10min);
  EXPECT_EQ(world.cloud().live().size(), 1u) << "the sweep ends the surplus one";
}

// A create was sent, and comes true a minute later.
void begin_with_a_late_create(World& world) {
  world.cloud().script(e2b::Operation::kCreate, {Fault::Kind::kLate, 60s});
  world.declare("Running");
  world.run_until("a create", [&] { return world.cloud().count(e2b::Operation::kCreate) > 0; });
}

TEST(CrashTest, ALateCreateIsWaitedFor) {  // I-AMBIG
  World world(Weather{});
  begin_with_a_late_create(world);
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(5min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, DeletingWhileACreateIsOutLeavesNothing) {  // I-DELRACE
  World world(Weather{});
  begin_with_a_late_create(world);
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  world.pass(5min);
  expect_nothing_left(world);
}

TEST(CrashTest, DeletingWhatNoLookHasShownYetLeavesNothing) {  // I-DEL
  World world(Weather{});
  world.cloud().set_list_lag(60s, 0s);
  world.cloud().chance(e2b::Operation::kGet, {Fault::Kind::kFalseAbsent}, 1);
  world.cloud().script(e2b::Operation::kKill, {Fault::Kind::kKept});
  world.declare("Running");
  world.run_until("bound", [&] { return !world.bound().empty(); });
  world.remove();
  world.pass(60s);
  EXPECT_FALSE(world.gone()) << "nothing has shown it, so its absence proves nothing";
  world.cloud().clear_chances();
  world.run_until("gone", [&] { return world.gone(); });
  expect_nothing_left(world);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kKill), 2u);
}

TEST(CrashTest, ALostStateFolderWaitsForTheCreatesThatItMayHaveSent) {  // I-AMBIG
  World world(Weather{});
  begin_with_a_late_create(world);
  world.lose_state();
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(10min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, WaitsForRoomByOneHoldAndSaysSo) {  // I-429Q
  World world(Weather{});
  world.cloud().set_quota(0);
  const auto why = [&] {
    const auto sandbox = world.life().sandbox();
    const auto* ready = sandbox ? api::find_condition(sandbox->status, "Ready") : nullptr;
    return ready ? ready->reason : "";
  };
  world.declare("Running");
  world.run_until("a refusal", [&] { return why() == api::reason::kProviderQuotaExceeded; });
  const base::Moment refused = world.now();
  const auto generation = world.life().sandbox()->metadata.generation;
  world.declare("Paused");  // Decided anew at once, as after every edit.
  world.run_until("the edit", [&] {
    const auto sandbox = world.life().sandbox();
    return sandbox->metadata.generation > generation &&
           sandbox->status.observed_generation == sandbox->metadata.generation;
  });
  EXPECT_EQ(why(), api::reason::kProviderQuotaExceeded);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 1u);
  world.declare("Running");
  world.run_until("the next try",
                  [&] { return world.cloud().count(e2b::Operation::kCreate) == 2; });
  EXPECT_LE(world.now(), refused + GateOptions{}.quota_hold + 1s);
  world.cloud().set_quota(1);
  const base::Moment freed = world.now();
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_LE(world.now(), freed + GateOptions{}.quota_hold + 5s);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 3u);
}

// A 404 may be a slip of the provider's, and a template may be built while it is waited for.
TEST(CrashTest, ATemplateThatIsNotThereIsAskedForAgain) {
  World world(Weather{});
  const auto stalled = [&] { return world.condition("Stalled"); };
  world.cloud().refuse_template("base");
  world.declare("Running");
  world.run_until("a standstill", stalled);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 3u) << "the first 404 is not believed";
  world.pass(14min);
  EXPECT_TRUE(stalled());
  EXPECT_LE(world.cloud().count(e2b::Operation::kCreate), 12u) << "less and less often";
  world.cloud().refuse_template("base", false);
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, AFreshInstallationWaitsForNothing) {
  World world(Weather{});
  const base::Moment begun = world.now();
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_LT(world.now(), begun + 10s);
}

TEST(CrashTest, LeaveSparesItFromEverySweep) {  // I-ORPHANPOLICY, S3
  for (const std::string policy : {"Leave", "Pause"}) {
    World world(Weather{.policy = policy});
    world.declare("Running");
    world.run_until("Ready", [&] { return world.ready(); });
    world.remove();
    world.run_until("gone", [&] { return world.gone(); });
    world.pass(10min);
    EXPECT_EQ(world.cloud().live().size(), 1u) << policy;
    EXPECT_EQ(world.cloud().count(e2b::Operation::kKill), 0u) << policy;
  }
}

TEST(CrashTest, TokensThatAreToldOnceOutliveTheProcess) {
  World world(Weather{.tokens_told_once = true});
  testing::internal::CaptureStderr();
  base::log::configure(base::log::Level::kDebug, base::log::Format::kText);
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const auto seen_again = [&] {
    const int before = world.insides().visits();
    world.restart();
    world.run_until("a look inside", [&] { return world.insides().visits() > before; });
  };
  seen_again();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  seen_again();
  EXPECT_EQ(world.insides().turned_away(), 0);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kConnect), 1u) << "but for the resume";
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_EQ(world.life().sandbox()->status.incarnation, 1);
  base::log::configure(base::log::Level::kInfo, base::log::Format::kText);
  const std::string told = testing::internal::GetCapturedStderr() + world.state_but_ways_in();
  EXPECT_NE(told.find("reconciled"), std::string::npos);
  EXPECT_NE(told.find("\"Ready\""), std::string::npos);
  EXPECT_EQ(told.find("-token-"), std::string::npos) << "a token was told";
  EXPECT_TRUE(world.keeps_a_token());
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  EXPECT_FALSE(world.keeps_a_token());
}

TEST(CrashTest, TokensThatACrashLostAreAskedForAnew) {
  World world(Weather{.tokens_told_once = true});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.forget_tokens();
  const int before = world.insides().visits();
  world.restart();
  world.run_until("a look inside", [&] { return world.insides().visits() > before; });
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_TRUE(world.keeps_a_token()) << "of the next restart, too";
}

TEST(CrashTest, AReplacementThatIsRefusedTooIsHeldBack) {
  World world(Weather{});
  world.insides().refuse(true);
  world.declare("Running");
  world.run_until("a refusal", [&] { return world.insides().refused() >= 1; });
  const base::Moment begun = world.now();
  world.run_until("a replacement", [&] { return world.insides().refused() >= 2; });
  EXPECT_LT(world.now(), begun + 1s) << "the first refusal is answered at once";
  world.pass(60s);
  EXPECT_GE(world.insides().refused(), 4);
  EXPECT_LE(world.insides().refused(), 10) << "each longer after the one before";
  world.insides().refuse(false);
  world.run_until("Ready", [&] { return world.ready(); });
}

TEST(CrashTest, AnExecutorThatEndedIsPreparedAnew) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.pass(1min);
  world.insides().end_executor(id);
  const auto since =
      api::find_condition(world.life().sandbox()->status, "Prepared")->last_transition;
  const base::Moment ended = world.now();
  world.run_until("another executor", [&] { return !world.insides().executor(id).empty(); });
  EXPECT_LE(world.now(), ended + 7min) << "a round, and the second ask that makes it certain";
  world.run_until("Ready again", [&] { return world.ready(); });
  const auto sandbox = world.life().sandbox();
  EXPECT_GT(api::find_condition(sandbox->status, "Prepared")->last_transition, since);
  EXPECT_NE(world.state_but_ways_in().find(api::reason::kExecutorGone), std::string::npos);
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"executor", 1}}));
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(sandbox->status.run, 1);
  EXPECT_EQ(sandbox->status.incarnation, 1) << "what runs beside the executor goes on";
}

TEST(CrashTest, AnExecutorIsAskedAtOnceWhenAPersonAsksForALook) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().end_executor(world.bound());
  const base::Moment ended = world.now();
  world.ask_for_a_look();
  world.run_until("another executor",
                  [&] { return !world.insides().executor(world.bound()).empty(); });
  EXPECT_LE(world.now(), ended + 30s);
}

TEST(CrashTest, AnExecutorThatCannotBeReachedIsNotTakenForDead) {  // Unknown is never absent.
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string executor = world.insides().executor(world.bound());
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.insides().cut_off(true);
  world.pass(14min);
  EXPECT_GE(world.insides().asked(), 2);
  EXPECT_EQ(world.insides().executor(world.bound()), executor);
  EXPECT_TRUE(world.condition("Ready"));
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);
}

TEST(CrashTest, AskingExecutorsThatAreWellWritesNothing) {  // I-NOFLAP
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(10s);
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.pass(14min);
  world.pass(14min);
  EXPECT_GE(world.insides().asked(), 4);
  EXPECT_LE(world.insides().asked(), 8);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);
}

TEST(CrashTest, ARollBackIsNoticedOnce) {  // S12
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  world.cloud().script(e2b::Operation::kPause, {Fault::Kind::kRolledBack});
  world.declare("Paused");
  world.run_until("Paused again", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready once more", [&] { return world.ready(); });
  EXPECT_EQ(world.life().sandbox()->status.incarnation, 2);
  EXPECT_EQ(world.life().sandbox()->status.notices.size(), 1u);
  EXPECT_EQ(world.insides().marker(id).incarnation, 2);
}

TEST(CrashTest, PausedByAnotherHandIsResumed) {  // I-DRIFT
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().pause_by_itself(world.bound());
  world.run_until("run 2",
                  [&] { return world.life().sandbox()->status.run == 2 && world.ready(); });
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"paused", 1}}));
}

// A provider that says yes and does nothing: what is told, and how often it is asked.
void expect_patience(World& world, e2b::Operation operation, const char* message) {
  const auto before = world.cloud().count(operation);
  const base::Moment begun = world.now();
  world.pass(60s);
  EXPECT_GE(world.now(), begun + 60s) << "a hot loop";
  EXPECT_GE(world.cloud().count(operation) - before, 4u);
  EXPECT_LE(world.cloud().count(operation) - before, 8u) << "each longer after the one before";
  const auto sandbox = world.life().sandbox();
  const auto* ready = api::find_condition(sandbox->status, "Ready");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->reason, api::reason::kNoEffect);
  EXPECT_EQ(ready->message, message);
  EXPECT_LE(world.events(), 2) << "nothing is told of each try";
}

TEST(CrashTest, APauseWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.declare("Paused");
  expect_patience(world, e2b::Operation::kPause,
                  "the provider said that it had paused it, and it is still running");
  EXPECT_EQ(world.life().sandbox()->status.state, "Pausing");
  EXPECT_FALSE(world.insides().quiesced(id)) << "what is inside works on meanwhile";
  world.cloud().clear_chances();
  world.run_until("Paused", [&] { return world.condition("Paused"); });
}

TEST(CrashTest, AResumeWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.cloud().chance(e2b::Operation::kConnect, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.declare("Running");
  expect_patience(world, e2b::Operation::kConnect,
                  "the provider said that it had resumed it, and it is still paused");
  EXPECT_EQ(world.life().sandbox()->status.state, "Resuming");
  world.cloud().clear_chances();
  world.run_until("Ready again", [&] { return world.ready(); });
}

TEST(CrashTest, AKillWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().chance(e2b::Operation::kKill, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.remove();
  world.pass(20s);
  EXPECT_GE(world.cloud().count(e2b::Operation::kKill), 4u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kKill), 12u);
  EXPECT_LE(world.events(), 2) << "nothing is told of each try";
  world.cloud().clear_chances();
  world.run_until("gone", [&] { return world.gone(); });
  expect_nothing_left(world);
}

TEST(CrashTest, ACreateOfUncertainOutcomeTellsWhyAndWaitsLongerEachTime) {  // I-AMBIG
  World world(Weather{.settle_seconds = 5});
  world.cloud().chance(e2b::Operation::kCreate, {Fault::Kind::kFailed500}, 1);
  world.declare("Running");
  bool told = false;
  const base::Moment until = world.now() + 3min;
  world.run_until("time", [&] {
    const auto sandbox = world.life().sandbox();
    const auto* ready = sandbox ? api::find_condition(sandbox->status, "Ready") : nullptr;
    told = told || (ready && ready->message.str().find("500: internal error") != std::string::npos);
    return world.now() >= until;
  });
  EXPECT_TRUE(told) << "the provider's words";
  EXPECT_GE(world.cloud().count(e2b::Operation::kCreate), 5u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kCreate), 9u);
  world.cloud().clear_chances();
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, AKilledOneIsLostAndSaysSo) {  // I-ABSENT
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().end(world.bound());
  world.run_until("Lost", [&] { return world.life().sandbox()->status.state == "Lost"; });
  world.pass(10min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"lost", 1}}));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
}

}  // namespace
}  // namespace controller
