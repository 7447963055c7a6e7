#include "controller/reconcile/idle.h"

#include <gtest/gtest.h>

#include <ostream>

#include "controller/reconcile/testing/scenes.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/version.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using namespace scene;  // NOLINT: the words of the tables below.
using api::DesiredState;
using api::PausedBy;

// Ready, to be paused when it idles for a minute; nobody has looked whether it does.
Observation may_idle() {
  Observation seen = ready();
  seen.wanted.spec.lifecycle.idle = 60s;
  return seen;
}
Observation idle_for(base::Milliseconds time, base::Moment ask_at = kNow + 1s) {
  return with(may_idle(),
              [&](auto& seen) { seen.memory.idle = {.ask_at = ask_at, .idle_for = time}; });
}
Observation terminating(Observation seen) {
  seen.wanted.spec.lifecycle.idle_action = api::IdleAction::kTerminate;
  return seen;
}
Observation asked_for(Observation seen, const char* value) {
  seen.wanted.metadata.annotations[std::string(api::kWakeAnnotation)] = value;
  return seen;
}
// What was tried last for its rest failed, and is to be tried again then.
Observation in_trouble(Observation seen, base::Moment until,
                       IdleTrouble::Step step = IdleTrouble::Step::kIdleAction, int failures = 1) {
  seen.memory.idle.trouble = IdleTrouble{.step = step,
                                         .failures = failures,
                                         .until = until,
                                         .what = "it said no",
                                         .generation = seen.wanted.metadata.generation};
  return seen;
}
// It stands still since then, because it idled.
Observation stands_still(base::Moment record_by = kNow + 30s) {
  return with(may_idle(), [&](auto& seen) {
    seen.memory.idle = {.record_by = record_by, .wake_seen = "before"};
    seen.memory.executor.health.quiesced = true;
  });
}
// It is on record that it ends because it idled, and that has not come true yet.
Observation ending() {
  return with(terminating(may_idle()),
              [](auto& seen) { seen.wanted.status.ended_by = api::EndedBy::kIdle; });
}
Observation seen_there(Observation seen) { return got(std::move(seen), "sb-1", sandbox("sb-1")); }
// The same, on record.
Observation on_record() {
  return with(may_idle(), [](auto& seen) { seen.wanted.status.paused_by = PausedBy::kIdle; });
}
Observation paused(Observation seen) {
  return listed(std::move(seen), {sandbox("sb-1", e2b::State::kPaused)});
}
Observation wanted_paused(Observation seen) {
  return wanting(std::move(seen), DesiredState::kPaused);
}

const wire::Identity kRun1{"uid-1", 1, 1, 1};

const Case kCases[] = {
    // While it runs.
    {"who_may_idle_is_asked", may_idle(), AskActivity{"sb-1", 60s}},
    {"who_may_not_is_left_alone",
     with(may_idle(), [](auto& seen) { seen.wanted.spec.lifecycle.idle.reset(); }),
     Keep{.ask_at = base::Moment::max()}},
    {"not_again_before_it_is_due", idle_for(20s), Keep{.ask_at = kNow + 1s}},
    {"its_health_may_be_due_before",
     with(idle_for(20s, kNow + 40s), [](auto& seen) { seen.memory.executor.ask_at = kNow + 5s; }),
     Keep{.ask_at = kNow + 5s}},
    {"and_then_again", idle_for(20s, kNow), AskActivity{"sb-1", 60s}},
    {"long_enough", idle_for(60s), QuiesceIdle{"sb-1", 60s}},
    {"with_what_was_asked_for_until_then", asked_for(idle_for(60s), "then"),
     QuiesceIdle{"sb-1", 60s, "then"}},
    {"not_if_it_is_to_be_paused_anyway", wanted_paused(idle_for(60s)),
     RecordPausedBy{PausedBy::kUser}},
    {"not_again_before_a_failure_was_waited_out", in_trouble(may_idle(), kNow + 20s),
     Keep{.ask_at = kNow + 20s}},
    {"whichever_is_later", in_trouble(idle_for(20s, kNow + 40s), kNow + 20s),
     Keep{.ask_at = kNow + 40s}},
    {"and_then_again_too", in_trouble(idle_for(20s, kNow), kNow), AskActivity{"sb-1", 60s}},
    {"at_once_when_it_was_edited",
     with(in_trouble(may_idle(), kNow + 20s),
          [](auto& seen) { seen.wanted.metadata.generation = 7; }),
     AskActivity{"sb-1", 60s}},
    {"at_once_when_somebody_asks_for_a_look",
     with(in_trouble(may_idle(), kNow + 20s),
          [](auto& seen) {
            seen.wanted.metadata.annotations[std::string(api::kReconcileAnnotation)] = "now";
            seen.memory.executor.request = "now";
          }),
     AskActivity{"sb-1", 60s}},
    {"health_comes_first",
     with(idle_for(60s), [](auto& seen) { seen.memory.executor.ask_at = kNow; }),
     AskExecutor{"sb-1", kWall}},

    // It stands still, and the record of that comes next.
    {"recorded_before_it_is_paused", stands_still(), RecordPausedBy{PausedBy::kIdle, "before"}},
    {"recorded_before_it_is_killed", terminating(stands_still()),
     RecordEnding{api::EndedBy::kIdle}},
    {"too_late_it_may_have_begun_again", stands_still(kNow), Resumed{"sb-1", kRun1}},
    {"it_may_idle_after_all",
     with(stands_still(), [](auto& seen) { seen.wanted.spec.lifecycle.idle.reset(); }),
     Resumed{"sb-1", kRun1}},
    {"of_a_process_before_nothing_is_known",
     with(stands_still(), [](auto& seen) { seen.memory.idle = {}; }), Resumed{"sb-1", kRun1}},

    // On record.
    {"then_it_is_paused", on_record(), Pause{"sb-1", 60s}},
    {"something_was_active", with(on_record(), [](auto& seen) { seen.memory.idle.busy = true; }),
     RecordPausedBy{}},
    {"asked_for_in_the_last_moment", asked_for(on_record(), "now"), RecordPausedBy{}},
    {"asked_for_and_standing_still",
     with(asked_for(stands_still(), "now"),
          [](auto& seen) { seen.wanted.status.paused_by = PausedBy::kIdle; }),
     Resumed{"sb-1", kRun1}},
    {"a_refused_pause_thaws", with(on_record(), [](auto& seen) { seen.memory.quiesced = true; }),
     Resumed{"sb-1", kRun1}},

    // On record that it ends.
    {"then_it_is_killed", ending(), Kill{"sb-1", 60s}},
    {"something_was_active_before_its_end",
     with(seen_there(ending()), [](auto& seen) { seen.memory.idle.busy = true; }), RecordEnding{}},
    {"it_is_to_end_no_longer",
     with(seen_there(ending()), [](auto& seen) { seen.wanted.spec.lifecycle.idle.reset(); }),
     RecordEnding{}},
    {"a_list_alone_may_lag", with(ending(), [](auto& seen) { seen.memory.idle.busy = true; }),
     Look{"sb-1"}},
    {"so_it_may_when_it_is_newer",
     with(seen_there(ending()),
          [](auto& seen) {
            seen.memory.idle.busy = true;
            seen.memory.got["sb-1"] = Got{kNow - 3s, {}, 1, kNow - 3s};
          }),
     Look{"sb-1"}},
    {"so_may_what_was_seen_before_the_last_call",
     with(seen_there(ending()),
          [](auto& seen) {
            seen.memory.idle.busy = true;
            seen.memory.changed = kNow;
            seen.memory.got["sb-1"].started = kNow - 1s;
          }),
     Look{"sb-1"}},
    {"it_is_to_be_paused_instead",
     with(seen_there(ending()),
          [](auto& seen) { seen.wanted.spec.lifecycle.idle_action = api::IdleAction::kPause; }),
     RecordEnding{}},
    {"its_end_was_answered",
     with(ending(),
          [](auto& seen) {
            seen.memory.idle.busy = true;
            seen.memory.killed = {{"sb-1", kNow - 10s}};
            seen.memory.listed->started = kNow - 1s;
          }),
     Kill{"sb-1"}},
    {"it_is_to_end_anyway",
     with(ending(), [](auto& seen) { seen.wanted.spec.lifecycle.max_lifetime = 60s; }),
     Kill{"sb-1"}},
    {"its_owner_wants_its_end", wanting(ending(), DesiredState::kTerminated), Kill{"sb-1"}},
    {"it_is_deleted", deleting(ending()), Kill{"sb-1"}},
    {"what_stands_still_is_not_asked", paused(ending()), Kill{"sb-1"}},
    {"it_is_looked_at_before",
     with(ending(),
          [](auto& seen) {
            seen.memory.shown = {"sb-1"};
            seen.memory.listed.reset();
          }),
     Look{"sb-1"}},
    {"it_is_not_seen", listed(ending(), {}), Look{"sb-1"}},
    {"it_is_gone",
     with(ending(),
          [](auto& seen) {
            seen.memory.listed = Listed{kNow - 1s, {}};
            seen.memory.got["sb-1"] = Got{kNow - 1s, {}, 2, kNow - 5s};
          }),
     Kill{"sb-1"}},

    // While it is paused.
    {"it_stays_so", paused(on_record()), Keep{}},
    {"also_with_the_wish_of_before",
     with(asked_for(paused(on_record()), "then"),
          [](auto& seen) { seen.wanted.status.wake_seen = "then"; }),
     Keep{}},
    {"that_the_wish_of_before_is_gone_wakes_nothing",
     with(paused(on_record()), [](auto& seen) { seen.wanted.status.wake_seen = "then"; }), Keep{}},
    {"nor_does_an_empty_one",
     with(asked_for(paused(on_record()), ""),
          [](auto& seen) { seen.wanted.status.wake_seen = "then"; }),
     Keep{}},
    {"a_new_wish_after_one_of_before",
     with(asked_for(paused(on_record()), "now"),
          [](auto& seen) { seen.wanted.status.wake_seen = "then"; }),
     Connect{"sb-1"}},
    {"a_wish_wakes_it", asked_for(paused(on_record()), "now"), Connect{"sb-1"}},
    {"so_does_the_end_of_the_policy",
     with(paused(on_record()), [](auto& seen) { seen.wanted.spec.lifecycle.idle.reset(); }),
     Connect{"sb-1"}},
    {"a_longer_time_does_not",
     with(paused(on_record()), [](auto& seen) { seen.wanted.spec.lifecycle.idle = 3600s; }),
     Keep{}},
    {"its_owner_wants_it_paused", wanted_paused(paused(on_record())),
     RecordPausedBy{PausedBy::kUser}},
    {"paused_by_its_owner_no_wish_wakes_it",
     with(asked_for(wanted_paused(paused(on_record())), "now"),
          [](auto& seen) { seen.wanted.status.paused_by = PausedBy::kUser; }),
     Keep{}},
    {"it_ends_all_the_same",
     with(paused(on_record()), [](auto& seen) { seen.wanted.spec.lifecycle.max_lifetime = 60s; }),
     RecordEnding{api::EndedBy::kMaxLifetime}},
};

class Idle : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, Idle, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

TEST_P(Idle, IsDecidedByWhatIsKnown) {
  const Action action = decide(GetParam().seen);
  EXPECT_EQ(name_of(action), name_of(GetParam().want));
  EXPECT_TRUE(action == GetParam().want);
}

struct Answer {
  const char* name;
  base::Result<wire::Activity> answer;
  IdleView want;
};
void PrintTo(const Answer& one, std::ostream* out) { *out << one.name; }
const Answer kAnswers[] = {
    {"just_active", wire::Activity{0}, {.ask_at = kNow + 60s, .idle_for = 0ms}},
    {"idle_for_some_time", wire::Activity{45'000}, {.ask_at = kNow + 15s, .idle_for = 45s}},
    {"almost", wire::Activity{59'999}, {.ask_at = kNow + kIdleLookMin, .idle_for = 59'999ms}},
    {"longer_than_that", wire::Activity{90'000}, {.ask_at = kNow + kIdleLookMin, .idle_for = 90s}},
    {"silent", base::Error{base::ErrorCode::kUnavailable, "no answer"}, {}},
};
class IdleAnswer : public testing::TestWithParam<Answer> {};
INSTANTIATE_TEST_SUITE_P(Of, IdleAnswer, testing::ValuesIn(kAnswers),
                         [](const auto& each) { return each.param.name; });
TEST_P(IdleAnswer, SaysWhenToAskAgain) {
  EXPECT_EQ(heard(IdleView{}, GetParam().answer, 60s, kNow), GetParam().want);
}

// What stands in the way of rest, and whether it does after a step was taken.
using Step = IdleTrouble::Step;
TEST(IdleTroubles, EndWithTheStepThatFailedOrALaterOne) {
  const auto left = [](Step failed, Step done) {
    IdleView view{.trouble = IdleTrouble{.step = failed}};
    taken(view, done);
    return view.trouble.has_value();
  };
  EXPECT_FALSE(left(Step::kAskActivity, Step::kAskActivity));
  EXPECT_FALSE(left(Step::kAskActivity, Step::kQuiesce));
  EXPECT_TRUE(left(Step::kQuiesce, Step::kAskActivity));
  EXPECT_TRUE(left(Step::kLastQuiesce, Step::kQuiesce)) << "else it would never be the third";
  EXPECT_FALSE(left(Step::kLastQuiesce, Step::kLastQuiesce));
  EXPECT_TRUE(left(Step::kIdleAction, Step::kLastQuiesce)) << "it idles, which was not the trouble";
  const IdleView refused = in_trouble(may_idle(), kNow).memory.idle;
  EXPECT_EQ(heard(refused, wire::Activity{0}, 60s, kNow).trouble, refused.trouble);
  EXPECT_EQ(heard(refused, base::Error{}, 60s, kNow).trouble, refused.trouble);
  EXPECT_EQ(afresh(refused).trouble, refused.trouble);
}

TEST(IdleTroubles, AreCountedByTheStepThatFails) {
  const api::Sandbox wanted = may_idle().wanted;
  std::optional<IdleTrouble> trouble;
  for (const Step step : {Step::kQuiesce, Step::kLastQuiesce}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(is_told(trouble));
      trouble = again(trouble, step, "why", wanted);
    }
    EXPECT_TRUE(is_told(trouble)) << "the third in a row";
    trouble.reset();
  }
  for (int i = 0; i < 3; ++i) trouble = again(trouble, Step::kLastQuiesce, "why", wanted);
  trouble = again(trouble, Step::kAskActivity, "why", wanted);
  EXPECT_FALSE(is_told(trouble));
  EXPECT_TRUE(is_told(again(trouble, Step::kIdleAction, "why", wanted))) << "the provider's word";
}

std::string said(const Observation& seen) {
  const auto awake = why_awake(seen);
  return awake ? std::string(awake->reason) + ": " + awake->message : "";
}
TEST(IdleTroubles, AreToldForPeople) {
  EXPECT_EQ(said(may_idle()), "");
  EXPECT_EQ(said(in_trouble(may_idle(), kNow, Step::kAskActivity, 2)), "");
  Observation unheard = in_trouble(may_idle(), kNow, Step::kAskActivity, 3);
  EXPECT_EQ(said(unheard),
            "IdlenessUnknown: whether it idles is not known, so it goes on: it said no");
  unheard.memory.executor.health.version = "0.0.1";
  EXPECT_EQ(said(unheard),
            "IdlenessUnknown: whether it idles is not known, so it goes on: it said no; its "
            "executor is of version 0.0.1, and this controller of " +
                std::string(base::kVersion) +
                ": one of an earlier version may not know, and another takes its place when it "
                "ends");
  const Observation refused = in_trouble(may_idle(), kNow);
  EXPECT_EQ(said(refused), "IdleActionFailed: it idles, and could not be paused: it said no");
  EXPECT_EQ(said(terminating(refused)),
            "IdleActionFailed: it idles, and could not be ended: it said no");
  EXPECT_EQ(said(with(refused, [](auto& seen) { seen.wanted.spec.lifecycle.idle.reset(); })), "");
  EXPECT_EQ(said(wanted_paused(refused)), "") << "that is another matter";
  EXPECT_EQ(said(deleting(refused)), "");
  EXPECT_EQ(
      said(with(refused, [](auto& seen) { seen.wanted.status.ended_by = api::EndedBy::kUser; })),
      "");
}

TEST(IdleTroubles, ThatAnEarlierProcessToldStandUntilSomethingIsKnown) {
  const auto told_before = [](Observation seen, std::string_view reason) {
    api::set_condition(seen.wanted.status.conditions, {.type = std::string(api::condition::kPaused),
                                                       .status = "False",
                                                       .reason = std::string(reason),
                                                       .message = "as before"});
    return seen;
  };
  EXPECT_EQ(said(told_before(may_idle(), api::reason::kIdlenessUnknown)),
            "IdlenessUnknown: as before");
  EXPECT_EQ(said(told_before(may_idle(), api::reason::kIdleActionFailed)),
            "IdleActionFailed: as before");
  EXPECT_EQ(said(told_before(idle_for(0ms), api::reason::kIdleActionFailed)), "");
  EXPECT_EQ(said(told_before(may_idle(), api::reason::kRunning)), "");
}

TEST(Idleness, IsRememberedOfOneExecutor) {
  const auto after = [](auto change) {
    Memory memory = stands_still().memory;
    ExecutorView view = memory.executor;
    change(view);
    note_executor(memory, view);
    EXPECT_EQ(memory.executor, view);
    return memory.idle;
  };
  EXPECT_EQ(after([](auto& view) { view.ask_at = kNow + 5min; }), stands_still().memory.idle);
  EXPECT_EQ(after([](auto& view) { view.health.instance = "i-2"; }), IdleView{}) << "replaced";
  EXPECT_EQ(after([](auto& view) { view = {.kind = ExecutorView::Kind::kSilent}; }), IdleView{});
}

}  // namespace
}  // namespace controller
