#include "controller/reconcile/decide.h"

#include <gtest/gtest.h>

#include "controller/reconcile/testing/scenes.h"
#include "libs/api/annotations.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using namespace scene;  // NOLINT: the words of the tables below.
using api::DeletionPolicy;
using api::DesiredState;

Observation sent(e2b::CreateFailure::Kind kind, base::Moment ended = kNow - 100s) {
  return with(recorded(), [&](Observation& seen) {
    seen.memory.sent =
        Sent{.attempt = kAttempt,
             .failure = e2b::CreateFailure{{base::ErrorCode::kUnavailable, "no answer"}, kind}};
    if (kind == e2b::CreateFailure::Kind::kAmbiguous) seen.memory.unclear_send_ended = ended;
  });
}

Observation paused(base::WallTime end_at = kWall + 1h) {
  auto info = sandbox("sb-1", e2b::State::kPaused);
  info.end_at = end_at;
  return listed(ready(), {info});
}

Observation refusing() {
  return with(ready(),
              [](Observation& seen) { seen.memory.executor.kind = ExecutorView::Kind::kRefuses; });
}

// An executor that was heard, and since then.
Observation heard_of(ExecutorView::Kind kind, base::Moment ask_at) {
  return with(ready(), [&](Observation& seen) {
    seen.memory.executor.kind = kind;
    seen.memory.executor.ask_at = ask_at;
  });
}

Observation asked_for(Observation seen) {
  seen.wanted.metadata.annotations[std::string(api::kReconcileAnnotation)] = "now";
  return seen;
}

Observation marked(wire::Identity marker, std::optional<base::WallTime> started = kWall + 1h) {
  return with(ready(), [&](Observation& seen) {
    seen.wanted.status.run = 3;
    seen.memory.listed->sandboxes[0].started_at = started;
    seen.memory.executor.started_at = started;
    seen.memory.executor.health.identity = std::move(marker);
  });
}

Observation killed(Observation seen, const std::string& id, base::Moment when) {
  seen.memory.killed[id] = seen.memory.changed = when;
  return looked(seen);
}

Observation held(Observation seen, base::Milliseconds left) {
  seen.memory.held = {.failures = 1,
                      .step = "Pause",
                      .until = kNow + left,
                      .reason = "ProviderUnavailable",
                      .why = {base::ErrorCode::kUnavailable, "busy"},
                      .generation = 1,
                      .deleting = seen.wanted.deleting()};
  return seen;
}

// The provider said that it had done `step`, for the first time.
Observation said_done(Observation seen, const char* step, base::Milliseconds left) {
  seen.memory.held = {.failures = 1,
                      .step = step,
                      .until = kNow + left,
                      .reason = "NoEffect",
                      .why = {base::ErrorCode::kUnavailable, "it is as it was"},
                      .generation = 1,
                      .deleting = seen.wanted.deleting(),
                      .open = true};
  return seen;
}

// Its UID outlived its record, and the provider was listed at `when`.
Observation recovered(base::Moment when, std::vector<Sighting> sandboxes = {}) {
  Observation seen = fresh();
  seen.wanted.metadata.annotations[std::string(api::kRecoveredAnnotation)] = "true";
  seen.now = when;
  return listed(seen, std::move(sandboxes), when);
}

// Bound, deleted and killed at once: nothing has shown it since its create was answered.
Observation never_shown(base::Moment send_ended) {
  Observation seen = bound({});
  seen.memory.made = "sb-1";
  seen.memory.send_ended = send_ended;
  return killed(deleting(got(seen, "sb-1", {})), "sb-1", kNow);
}

// An Operation is at one of its steps, for so long.
Observation busy(std::optional<base::Milliseconds> at_its_step) {
  return with(ready(), [&](Observation& seen) {
    seen.operation = "Prepare";
    if (at_its_step) seen.memory.progress = Progress{"sending the executor", kNow - *at_its_step};
  });
}

// The provider was full a moment ago.
Observation full(Observation seen) {
  seen.no_room = base::Error{base::ErrorCode::kRateLimited, "20 of 20", 12s};
  return seen;
}
const Wait kNoRoom{"ProviderQuotaExceeded", "20 of 20", 12'000ms};

const wire::Identity kRun4{"uid-1", 1, 1, 4};

const Case kCases[] = {
    // While an Operation is under way.
    {"its_end_brings_the_next_turn", busy({}), Wait{"", "Prepare", kSlowStep}},
    {"or_that_its_step_becomes_slow", busy(4s), Wait{"", "Prepare", 6s}},
    {"and_then_its_end_is_looked_for", busy(kSlowStep + 1ms), Wait{"", "Prepare", kSlowStepLook}},

    // Creating.
    {"look_before_anything", fresh(), Look{}},
    {"record_before_anything_exists", listed(fresh(), {}), RecordIntent{}},  // I-INTENT
    {"adopt_what_lost_its_record", listed(fresh(), {sandbox("sb-9")}), RecordIntent{kAttempt}},
    {"a_lost_record_may_have_sent_a_create", recovered(kBegan + 89s),
     Wait{
         "ResolvingCreate",
         "the record of earlier creates was lost; none is sent before it is certain that they made "
         "nothing",
         2'000ms}},
    {"begin_once_that_has_settled", recovered(kBegan + 90s), RecordIntent{}},
    {"adopt_what_a_lost_record_made", recovered(kBegan + 1s, {sandbox("sb-9")}),
     RecordIntent{kAttempt}},
    {"create_when_recorded", recorded(), Create{kAttempt}},
    {"never_without_the_finalizer",  // I-FIN
     with(recorded(), [](Observation& seen) { seen.wanted.metadata.finalizers.clear(); }),
     RecordIntent{kAttempt}},
    {"bind_what_the_create_gave",
     with(recorded(), [](Observation& seen) { seen.memory.sent = Sent{kAttempt, "sb-1"}; }),
     Bind{"sb-1", kAttempt}},
    {"bind_what_a_lost_reply_made", listed(recorded(false), {sandbox("sb-1")}),
     Bind{"sb-1", kAttempt}},
    {"wait_for_a_create_from_before_the_restart",  // I-AMBIG
     with(recorded(false),
          [](Observation& seen) {
            seen.memory.listed->started = kBegan + 89s;
            seen.now = kBegan + 90s;
          }),
     Wait{"ResolvingCreate",
          "a create was not answered; no other is sent before it is certain that it made nothing",
          1'000ms}},
    {"a_new_nonce_once_that_has_settled", recorded(false), RecordIntent{}},
    {"look_while_an_answer_is_out",
     with(sent(e2b::CreateFailure::Kind::kAmbiguous, kNow - 89s),
          [](Observation& seen) { seen.memory.listed->started = kNow - 5s; }),
     Look{}},
    {"a_new_nonce_after_settle_and_a_clean_list", sent(e2b::CreateFailure::Kind::kAmbiguous),
     RecordIntent{}},
    {"an_older_list_is_no_witness",
     with(sent(e2b::CreateFailure::Kind::kAmbiguous),
          [](Observation& seen) { seen.memory.listed->started = kNow - 11s; }),
     Look{}},
    {"count_a_refusal", sent(e2b::CreateFailure::Kind::kCapacity), CountRefusal{{"n1", 1, 1}}},
    {"the_key_was_never_used", sent(e2b::CreateFailure::Kind::kNotSent), Create{kAttempt}},
    {"wait_for_a_template_that_may_be_built_yet",
     with(held(sent(e2b::CreateFailure::Kind::kNotSent), 90s),
          [](Observation& seen) {
            seen.memory.held.step = "Create";
            seen.memory.held.reason = "TemplateNotFound";
            seen.memory.held.standstill = true;
          }),
     Wait{"TemplateNotFound", "busy", 90'000ms, true}},
    {"mean_no_create_without_room", full(listed(fresh(), {})), kNoRoom},  // I-429Q
    {"send_none_without_room", full(recorded()), kNoRoom},
    {"count_the_refusal_for_want_of_room", full(sent(e2b::CreateFailure::Kind::kQuota)),
     CountRefusal{{"n1", 1, 1}}},
    {"wait_for_room_where_none_was_sent", full(sent(e2b::CreateFailure::Kind::kNotSent)), kNoRoom},
    {"mean_no_other_create_without_room", full(sent(e2b::CreateFailure::Kind::kAmbiguous)),
     kNoRoom},
    {"adopt_without_room", full(listed(fresh(), {sandbox("sb-9")})), RecordIntent{kAttempt}},
    {"bind_without_room", full(listed(recorded(false), {sandbox("sb-1")})), Bind{"sb-1", kAttempt}},
    {"an_own_hold_goes_first",
     full(with(held(recorded(), 90s), [](Observation& seen) { seen.memory.held.step = "Create"; })),
     Wait{"ProviderUnavailable", "busy", 90'000ms}},
    {"adopt_a_higher_epoch",
     listed(recorded(false), {sandbox("sb-7", e2b::State::kRunning, "n7", 7)}),
     RecordIntent{api::Attempt{"n7", 7, 0}}},

    // Preparing.
    {"extend_once_bound", with(bound(), [](Observation& seen) { seen.memory.bound_here = true; }),
     Extend{"sb-1"}},
    {"prepare_what_runs", bound(), Prepare{"sb-1", kWall}},
    {"tell_a_new_executor_who_it_is",
     with(ready(),
          [](Observation& seen) {
            seen.wanted.status.run = 0;
            seen.wanted.status.start_time.reset();
            seen.memory.executor.health.identity = {};
          }),
     Resumed{"sb-1", {"uid-1", 1, 1, 1}}},
    {"tell_the_executor_of_a_new_epoch_why",
     with(ready(),
          [](Observation& seen) {
            seen.wanted.status.epoch = 2;
            seen.wanted.status.incarnation = 2;
            seen.wanted.status.run = 0;
            seen.wanted.status.start_time.reset();
            seen.memory.executor.health.identity = {};
          }),
     Resumed{"sb-1",
             {"uid-1", 2, 2, 1},
             wire::News{"recreated",
                        "the sandbox is a new one in place of one that is gone: processes are "
                        "gone, and files are those of a new sandbox"}}},
    {"record_the_run_that_was_told",
     with(ready(),
          [](Observation& seen) {
            seen.wanted.status.run = 0;
            seen.wanted.status.start_time.reset();
            seen.memory.told = key_of_run("i-1", kWall);
          }),
     RecordRun{1, kWall}},
    {"keep_when_ready", ready(), Keep{}},
    {"thaw_what_a_crash_left_quiesced",
     with(ready(), [](Observation& seen) { seen.memory.executor.health.quiesced = true; }),
     Resumed{"sb-1", {"uid-1", 1, 1, 1}}},
    {"count_an_executor_that_refuses", refusing(),
     RecordIncarnation{2,
                       "the executor refused its controller or was an impostor, and was replaced: "
                       "processes are no longer attached"}},
    {"replace_an_executor_that_refuses",
     with(refusing(), [](Observation& seen) { seen.memory.refusal_counted = true; }),
     Prepare{"sb-1", kWall, true}},

    // While it is Ready, what the executor said grows old.
    {"keep_until_the_executor_is_due", heard_of(ExecutorView::Kind::kAnswering, kNow + 1ms),
     Keep{.ask_at = kNow + 1ms}},
    {"ask_an_executor_that_is_due", heard_of(ExecutorView::Kind::kAnswering, kNow),
     AskExecutor{"sb-1", kWall}},
    {"ask_it_when_a_person_asks", asked_for(heard_of(ExecutorView::Kind::kAnswering, kNow + 5min)),
     AskExecutor{"sb-1", kWall}},
    {"a_person_was_answered",
     with(asked_for(heard_of(ExecutorView::Kind::kAnswering, kNow + 5min)),
          [](Observation& seen) { seen.memory.executor.request = "now"; }),
     Keep{.ask_at = kNow + 5min}},
    {"what_it_needs_comes_before_an_ask",
     with(heard_of(ExecutorView::Kind::kAnswering, kNow),
          [](Observation& seen) { seen.memory.executor.health.quiesced = true; }),
     Resumed{"sb-1", {"uid-1", 1, 1, 1}}},
    {"ask_nobody_who_is_to_be_paused",
     wanting(heard_of(ExecutorView::Kind::kAnswering, kNow), DesiredState::kPaused),
     RecordPausedBy{api::PausedBy::kUser}},
    {"wait_with_a_pause_that_had_no_effect",
     said_done(wanting(with(ready(),
                            [](Observation& seen) {
                              seen.wanted.status.paused_by = api::PausedBy::kUser;
                            }),
                       DesiredState::kPaused),
               "Pause", 4s),
     Wait{"NoEffect", "it is as it was", 4'000ms}},
    {"thaw_what_had_no_pause",
     said_done(wanting(with(ready(),
                            [](Observation& seen) {
                              seen.wanted.status.paused_by = api::PausedBy::kUser;
                              seen.memory.quiesced = true;
                            }),
                       DesiredState::kPaused),
               "Pause", 4s),
     Resumed{"sb-1", {"uid-1", 1, 1, 1}}},
    {"wait_with_a_resume_that_had_no_effect", said_done(paused(), "Connect", 4s),
     Wait{"NoEffect", "it is as it was", 4'000ms}},
    {"resume_again_after_that", said_done(paused(), "Connect", 0s), Connect{"sb-1"}},
    {"go_on_after_what_was_said_done", said_done(bound(), "Connect", 4s), Prepare{"sb-1", kWall}},
    {"wait_before_the_next_create",
     said_done(sent(e2b::CreateFailure::Kind::kAmbiguous), "Create", 4s),
     Wait{"NoEffect", "it is as it was", 4'000ms}},
    {"bind_whatever_became_of_the_create",
     said_done(listed(sent(e2b::CreateFailure::Kind::kAmbiguous), {sandbox("sb-1")}), "Create", 4s),
     Bind{"sb-1", kAttempt}},
    {"prepare_what_is_gone", heard_of(ExecutorView::Kind::kGone, kNow + 5min),
     Prepare{"sb-1", kWall}},
    {"what_was_held_back_is_tried_when_a_person_asks",
     asked_for(
         held(with(wanting(ready(), DesiredState::kPaused),
                   [](Observation& seen) { seen.wanted.status.paused_by = api::PausedBy::kUser; }),
              5s)),
     Pause{"sb-1"}},

    // Resuming: the marker tells (S12).
    {"same_marker_next_run", marked({"uid-1", 1, 1, 3}), Resumed{"sb-1", kRun4}},
    {"newer_marker_is_a_crash_in_between", marked({"uid-1", 1, 1, 4}),
     Resumed{"sb-1", {"uid-1", 1, 1, 5}}},
    {"older_marker_is_a_roll_back", marked({"uid-1", 1, 1, 2}),
     RecordIncarnation{2,
                       "the sandbox was rolled back to its state of run 2: what later runs wrote "
                       "is lost, and processes are gone"}},
    {"a_roll_back_counts_once",
     with(marked({"uid-1", 1, 1, 2}),
          [](Observation& seen) {
            seen.wanted.status.incarnation = 2;
            seen.memory.judged = key_of_run("i-1", kWall + 1h);
          }),
     Resumed{"sb-1",
             {"uid-1", 1, 2, 4},
             wire::News{"rolledBack",
                        "the sandbox was rolled back to its state of run 2: what later runs wrote "
                        "is lost, and processes are gone"}}},
    {"missing_marker_is_unknown", marked({}),
     RecordIncarnation{2,
                       "the marker of earlier runs is missing: processes are gone, and whether "
                       "files were rolled back is unknown"}},

    // Pausing and resuming.
    {"say_who_pauses_first", wanting(ready(), DesiredState::kPaused),
     RecordPausedBy{api::PausedBy::kUser}},
    {"pause_when_asked",
     with(wanting(ready(), DesiredState::kPaused),
          [](Observation& seen) { seen.wanted.status.paused_by = api::PausedBy::kUser; }),
     Pause{"sb-1"}},
    {"thaw_after_a_refused_pause",
     held(with(wanting(ready(), DesiredState::kPaused),
               [](Observation& seen) {
                 seen.wanted.status.paused_by = api::PausedBy::kUser;
                 seen.memory.quiesced = true;
               }),
          5s),
     Resumed{"sb-1", {"uid-1", 1, 1, 1}}},
    {"wait_out_a_refused_pause",
     held(with(wanting(ready(), DesiredState::kPaused),
               [](Observation& seen) { seen.wanted.status.paused_by = api::PausedBy::kUser; }),
          5s),
     Wait{"ProviderUnavailable", "busy", 5'000ms}},
    {"keep_what_is_paused",
     with(wanting(paused(), DesiredState::kPaused),
          [](Observation& seen) { seen.wanted.status.paused_by = api::PausedBy::kUser; }),
     Keep{}},
    {"resume_when_wanted", paused(), Connect{"sb-1"}},  // I-DRIFT
    {"a_save_older_than_the_run_is_a_roll_back", paused(kWall - 1s), Connect{"sb-1", true}},

    // Doubt.
    {"look_again_at_what_a_list_omits", listed(ready(), {}), Look{"sb-1"}},  // I-ABSENT
    {"a_list_after_a_miss", got(listed(ready(), {}, kNow - 5s), "sb-1", {}), Look{}},
    {"two_misses_and_a_list_between_are_proof",
     got(listed(ready(), {}, kNow - 3s), "sb-1", {}, 2, kNow, kNow - 5s),
     Wait{"Lost", "the E2B sandbox sb-1 no longer exists; delete this Sandbox and make another",
          0ms, true}},
    {"leave_anothers_alone",
     with(ready(),
          [](Observation& seen) {
            seen.memory.listed->sandboxes.clear();
            auto other = sandbox("sb-1");
            other.uid = "uid-2";
            seen.memory.got["sb-1"] = Got{kNow, other};
          }),
     Wait{"NameConflict",
          "the E2B sandbox sb-1 does not carry this Sandbox's UID; it is left alone", 0ms, true}},

    // Ending.
    {"record_the_ending_first", wanting(ready(), DesiredState::kTerminated),
     RecordEnding{api::EndedBy::kUser}},
    {"shut_down_in_time",
     with(ready(), [](Observation& seen) { seen.wanted.spec.lifecycle.shutdown_time = kWall; }),
     RecordEnding{api::EndedBy::kShutdownTime}},
    {"no_longer_than_its_lifetime",
     with(ready(), [](Observation& seen) { seen.wanted.spec.lifecycle.max_lifetime = 60s; }),
     RecordEnding{api::EndedBy::kMaxLifetime}},
    {"then_kill",
     with(ready(), [](Observation& seen) { seen.wanted.status.ended_by = api::EndedBy::kUser; }),
     Kill{"sb-1"}},
    {"gone_for_good_is_kept",
     with(ready(),
          [](Observation& seen) {
            seen.wanted.status.ended_by = api::EndedBy::kUser;
            seen.wanted.status.terminated_time = kWall;
          }),
     Keep{}},
    {"until_its_ttl",
     with(ready(),
          [](Observation& seen) {
            seen.wanted.status.ended_by = api::EndedBy::kUser;
            seen.wanted.status.terminated_time = kWall;
            seen.wanted.spec.lifecycle.ttl_after_terminated = 60s;
          }),
     DeleteObject{}},

    // Deleting.
    {"nothing_was_ever_made", deleting(recorded()), RemoveFinalizer{}},
    {"resolve_what_was_never_bound",  // I-DELRACE
     deleting(sent(e2b::CreateFailure::Kind::kAmbiguous, kNow - 50s)),
     Wait{"Deleting", "waiting for a complete list that shows nothing of it", 2'000ms}},
    {"kill_what_a_lost_reply_made", deleting(listed(recorded(false), {sandbox("sb-1")})),
     Kill{"sb-1"}},
    {"kill_before_forgetting", deleting(ready()), Kill{"sb-1"}},
    {"look_at_what_only_the_status_names", deleting(bound({})), Look{"sb-1"}},
    {"look_at_what_was_just_made",
     with(deleting(bound({})), [](Observation& seen) { seen.memory.made = "sb-1"; }), Look{"sb-1"}},
    {"what_was_never_shown_may_still_lag", never_shown(kNow - 89s),
     Wait{"Deleting", "waiting for a complete list that shows nothing of it", 2'000ms}},
    {"what_was_never_shown_has_settled", never_shown(kNow - 90s), RemoveFinalizer{}},
    {"the_absence_of_what_was_shown_counts_at_once",
     with(never_shown(kNow - 1s), [](Observation& seen) { seen.memory.shown = {"sb-1"}; }),
     RemoveFinalizer{}},
    {"after_a_restart_it_settles_from_there",
     with(never_shown({}),
          [](Observation& seen) {
            seen.memory.send_ended.reset();
            seen.began = kNow - 89s;
          }),
     Wait{"Deleting", "waiting for a complete list that shows nothing of it", 2'000ms}},
    {"a_kill_is_no_proof", killed(deleting(ready()), "sb-1", kNow - 2s), Kill{"sb-1"}},
    {"a_kill_in_vain_is_not_repeated_at_once", killed(deleting(ready()), "sb-1", kNow - 500ms),
     Wait{"Deleting", "sb-1 is still there after it was ended; ending it again", 1'500ms}},
    {"list_after_the_kill",  // I-DEL
     killed(deleting(listed(ready(), {sandbox("sb-1")}, kNow - 10s)), "sb-1", kNow), Look{}},
    {"get_after_the_kill", killed(deleting(listed(ready(), {})), "sb-1", kNow), Look{"sb-1"}},
    {"forget_once_proven", killed(deleting(got(listed(ready(), {}), "sb-1", {})), "sb-1", kNow),
     RemoveFinalizer{}},
    {"release_before_leaving", deleting(ready(), DeletionPolicy::kLeave),
     Release{"sb-1", DeletionPolicy::kLeave}},
    {"leave_with_a_long_lease",
     with(deleting(ready(), DeletionPolicy::kLeave),
          [](Observation& seen) { seen.memory.released = "sb-1"; }),
     Leave{"sb-1"}},
    {"left_is_done",
     with(deleting(ready(), DeletionPolicy::kLeave),
          [](Observation& seen) { seen.memory.released = seen.memory.left = "sb-1"; }),
     RemoveFinalizer{}},
    {"surplus_does_not_stay",
     with(deleting(listed(ready(), {sandbox("sb-1"), sandbox("sb-2", e2b::State::kRunning, "n0")}),
                   DeletionPolicy::kLeave),
          [](Observation& seen) { seen.memory.released = seen.memory.left = "sb-1"; }),
     Kill{"sb-2"}},
    {"pause_and_let_go",
     with(deleting(ready(), DeletionPolicy::kPause),
          [](Observation& seen) { seen.memory.released = "sb-1"; }),
     Pause{"sb-1"}},
    {"paused_is_let_go",
     with(deleting(paused(), DeletionPolicy::kPause),
          [](Observation& seen) { seen.memory.released = "sb-1"; }),
     RemoveFinalizer{}},
};

class Decide : public testing::TestWithParam<Case> {};

TEST_P(Decide, PicksOneStep) {
  const Action picked = decide(GetParam().seen);
  EXPECT_EQ(picked, GetParam().want)
      << "picked " << name_of(picked) << ", wanted " << name_of(GetParam().want)
      << (std::holds_alternative<Wait>(picked) ? ": " + std::get<Wait>(picked).why : "");
}

INSTANTIATE_TEST_SUITE_P(, Decide, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
