#include "controller/reconcile/report.h"

#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "controller/reconcile/testing/scenes.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using namespace scene;  // NOLINT: the words of the tables below.
using api::DesiredState;

enum class Writes { kNo, kStatus };
const std::optional<base::Milliseconds> kAtOnce = 0ms, kNever = {};

// What is told of a step that was done, or of one that waits.
struct Case {
  const char* name;
  Observation seen;
  Action action;
  const char* state;
  const char* ready;  // The word of the Ready condition, and its reason.
  const char* reason;
  Writes writes = Writes::kNo;
  std::optional<api::Event> event = {};
  std::optional<base::Milliseconds> again = kAtOnce;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

api::Event normal(const char* reason, const char* action, const char* note) {
  return {"Normal", reason, action, note};
}
api::Event warning(const char* reason, const char* action, const char* note) {
  return {"Warning", reason, action, note};
}

Observation ended(Observation seen = ready()) {
  seen.wanted.status.ended_by = api::EndedBy::kMaxLifetime;
  return seen;
}
Observation busy(Observation seen, const char* operation) {
  seen.operation = operation;
  return seen;
}
Observation slow(Observation seen, base::Milliseconds took, bool told = false) {
  seen.memory.progress = Progress{"sending the executor", seen.now - took, told};
  return seen;
}
Observation gone() {
  Observation seen = ready();
  seen.memory.executor.kind = ExecutorView::Kind::kGone;
  return seen;
}
Observation paused_by_user() {
  Observation seen = wanting(ready(), DesiredState::kPaused);
  seen.wanted.status.paused_by = api::PausedBy::kUser;
  return seen;
}
Observation ready_to_idle() {
  Observation seen = ready();
  seen.wanted.spec.lifecycle.idle = 60s;
  return seen;
}
Observation idle() {
  Observation seen = ready_to_idle();
  seen.wanted.status.paused_by = api::PausedBy::kIdle;
  return seen;
}
Observation killed_before(Observation seen) {
  seen.memory.killed["sb-1"] = kNow;
  return seen;
}
Observation in_vain(Observation seen, const char* step, const char* reason = "NoEffect") {
  seen.memory.held = {.failures = 1,
                      .step = step,
                      .reason = reason,
                      .why = {base::ErrorCode::kUnavailable, "why"},
                      .generation = seen.wanted.metadata.generation,
                      .deleting = seen.wanted.deleting()};
  return seen;
}
// What had no effect is on record.
Observation told(Observation seen) {
  api::set_condition(seen.wanted.status.conditions,
                     {.type = "Ready", .status = "False", .reason = "NoEffect"});
  return seen;
}
Wait wait_for(std::string_view reason, bool stalled = false) {
  return {std::string(reason), "why", stalled ? 0ms : 2'000ms, stalled};
}

namespace reason = api::reason;

const Case kCases[] = {
    // On the way: told only where it takes long.
    {"look", fresh(), Look{}, "Creating", "False", "Creating"},
    {"record_intent", fresh(), RecordIntent{}, "Creating", "False", "Creating"},
    {"count_refusal", recorded(), CountRefusal{}, "Creating", "False", "Creating"},
    {"create", recorded(), Create{kAttempt}, "Creating", "False", "Creating"},
    {"bind", recorded(), Bind{"sb-1", kAttempt}, "Preparing", "False", "Preparing", Writes::kNo,
     normal("Created", "Bind", "E2B sandbox sb-1")},
    {"extend", bound(), Extend{"sb-1"}, "Preparing", "False", "Preparing"},
    {"prepare", bound(), Prepare{"sb-1"}, "Preparing", "False", "Preparing"},
    {"prepare_what_is_gone", gone(), Prepare{"sb-1"}, "Preparing", "False", "ExecutorGone",
     Writes::kStatus,
     warning("ExecutorGone", "Prepare",
             "the executor no longer ran inside; it is being started anew")},
    {"ask_executor", ready(), AskExecutor{"sb-1"}, "Running", "True", "Ready"},
    {"resumed", bound(), Resumed{"sb-1", {}}, "Preparing", "False", "Preparing"},
    {"pause", ready(), Pause{"sb-1"}, "Pausing", "False", "Pausing", Writes::kNo,
     normal("Pausing", "Pause", "sb-1")},
    {"connect_what_another_paused", ready(), Connect{"sb-1"}, "Resuming", "False", "Resuming",
     Writes::kNo,
     warning("PausedUnderUs", "Connect", "sb-1 was paused by another hand; resuming it")},
    {"connect_what_was_paused_as_asked", wanting(paused_by_user(), DesiredState::kRunning),
     Connect{"sb-1"}, "Resuming", "False", "Resuming", Writes::kNo,
     normal("Resuming", "Connect", "sb-1")},
    {"kill", ended(), Kill{"sb-1"}, "Terminating", "False", "Terminating", Writes::kStatus,
     normal("Killing", "Kill", "E2B sandbox sb-1")},

    {"kill_while_deleting", deleting(ready()), Kill{"sb-1"}, "Deleting", "False", "Deleting",
     Writes::kStatus, normal("Killing", "Kill", "E2B sandbox sb-1")},
    {"kill_again", killed_before(ended()), Kill{"sb-1"}, "Terminating", "False", "Terminating",
     Writes::kStatus},
    {"kill_again_after_a_failure", in_vain(ended(), "Kill", "ProviderUnavailable"), Kill{"sb-1"},
     "Terminating", "Unknown", "ProviderUnavailable", Writes::kStatus},
    {"pause_again", in_vain(paused_by_user(), "Pause"), Pause{"sb-1"}, "Pausing", "False",
     "Pausing"},
    {"connect_again", in_vain(ready(), "Connect"), Connect{"sb-1"}, "Resuming", "False",
     "Resuming"},

    // Records.
    {"a_new_incarnation", ready(), RecordIncarnation{2, "processes are gone"}, "Preparing", "False",
     "Preparing", Writes::kStatus,
     warning("ProcessesLost", "RecordIncarnation", "processes are gone")},
    {"the_first_incarnation", ready(), RecordIncarnation{1}, "Preparing", "False", "Preparing",
     Writes::kStatus},
    {"a_run", bound(), RecordRun{1, kWall}, "Running", "True", "Ready", Writes::kStatus,
     normal("Ready", "RecordRun", "run 1")},
    {"who_pauses", ready(), RecordPausedBy{api::PausedBy::kUser}, "Pausing", "False", "Pausing",
     Writes::kStatus},
    {"idle", ready_to_idle(), RecordPausedBy{api::PausedBy::kIdle, "w"}, "Pausing", "False",
     "Pausing", Writes::kStatus,
     normal("Idle", "RecordPausedBy", "nothing was active in it for 60 s")},
    {"idle_no_longer", idle(), RecordPausedBy{}, "Running", "True", "Ready", Writes::kStatus},
    {"paused_for_idleness", idle(), Keep{}, "Paused", "False", "Idle", Writes::kStatus, {}, kNever},
    {"woken", idle(), Connect{"sb-1"}, "Resuming", "False", "Resuming", Writes::kNo,
     normal("Waking", "Connect", "sb-1")},
    {"asks_whether_it_idles", ready_to_idle(), AskActivity{"sb-1", 60s}, "Running", "True",
     "Ready"},
    {"has_it_stand_still", ready_to_idle(), QuiesceIdle{"sb-1", 60s}, "Running", "True", "Ready"},
    {"asked_whether_it_idles",
     busy(ready_to_idle(), "AskActivity"),
     Wait{"", "AskActivity"},
     "Running",
     "True",
     "Ready",
     Writes::kNo,
     {},
     2'000ms},
    {"stands_still_for_a_moment",
     busy(ready_to_idle(), "QuiesceIdle"),
     Wait{"", "QuiesceIdle"},
     "Running",
     "True",
     "Ready",
     Writes::kNo,
     {},
     2'000ms},
    {"paused_by_nobody_any_more", ready(), RecordPausedBy{}, "Running", "True", "Ready",
     Writes::kStatus},
    {"no_ending_after_all", ended(), RecordEnding{}, "Running", "True", "Ready", Writes::kStatus},
    {"an_ending", ready(), RecordEnding{api::EndedBy::kShutdownTime}, "Terminating", "False",
     "ShutdownTimeReached", Writes::kStatus,
     normal("Ending", "RecordEnding", "ShutdownTimeReached")},
    {"terminated", ended(), RecordTerminated{}, "Terminated", "False", "MaxLifetimeReached",
     Writes::kStatus},

    // Kept.
    {"running", ready(), Keep{}, "Running", "True", "Ready", Writes::kStatus, {}, kNever},
    {"running_until",
     ready(),
     Keep{kWall + 11min},
     "Running",
     "True",
     "Ready",
     Writes::kStatus,
     {},
     60'000ms},
    {"running_until_its_executor_is_due",
     ready(),
     Keep{.ask_at = kNow + 40s},
     "Running",
     "True",
     "Ready",
     Writes::kStatus,
     {},
     40'000ms},
    {"running_until_the_earlier_of_both",
     ready(),
     Keep{kWall + 11min, kNow + 90s},
     "Running",
     "True",
     "Ready",
     Writes::kStatus,
     {},
     60'000ms},
    {"running_with_an_executor_that_was_due",
     ready(),
     Keep{.ask_at = kNow - 1s},
     "Running",
     "True",
     "Ready",
     Writes::kStatus,
     {},
     1ms},
    {"paused", paused_by_user(), Keep{}, "Paused", "False", "Paused", Writes::kStatus, {}, kNever},
    {"ended",
     ended(),
     Keep{},
     "Terminated",
     "False",
     "MaxLifetimeReached",
     Writes::kStatus,
     {},
     kNever},

    // Waiting.
    {"for_a_create",
     busy(recorded(), "Create"),
     Wait{},
     "Creating",
     "False",
     "Creating",
     Writes::kNo,
     {},
     2'000ms},
    {"for_a_create_that_is_slow", slow(busy(recorded(), "Create"), 10s), Wait{}, "Creating",
     "False", "Creating", Writes::kStatus,
     warning("SlowStep", "Create", "sending the executor takes longer than 10 s"), 2'000ms},
    {"for_preparation",
     busy(bound(), "Prepare"),
     Wait{},
     "Preparing",
     "False",
     "Preparing",
     Writes::kNo,
     {},
     2'000ms},
    {"for_a_step_that_is_slow", slow(busy(bound(), "Prepare"), 10s), Wait{}, "Preparing", "False",
     "Preparing", Writes::kStatus,
     warning("SlowStep", "Prepare", "sending the executor takes longer than 10 s"), 2'000ms},
    {"for_a_look",
     busy(ready(), "Look"),
     Wait{},
     "Preparing",
     "False",
     "Preparing",
     Writes::kNo,
     {},
     2'000ms},
    {"for_a_kill",
     busy(ended(), "Kill"),
     Wait{},
     "Terminating",
     "False",
     "Terminating",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_kill_while_deleting",
     busy(deleting(ready()), "Kill"),
     Wait{},
     "Deleting",
     "False",
     "Deleting",
     Writes::kStatus,
     {},
     2'000ms},
    {"after_a_pause_in_vain", in_vain(paused_by_user(), "Pause"), wait_for(reason::kNoEffect),
     "Pausing", "False", "NoEffect", Writes::kStatus, warning("NoEffect", "Wait", "why"), 2'000ms},
    {"after_more_pauses_in_vain",
     told(in_vain(paused_by_user(), "Pause")),
     wait_for(reason::kNoEffect),
     "Pausing",
     "False",
     "NoEffect",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_one_more_pause",
     busy(told(in_vain(paused_by_user(), "Pause")), "Pause"),
     Wait{},
     "Pausing",
     "False",
     "NoEffect",
     Writes::kStatus,
     {},
     2'000ms},
    {"after_a_resume_in_vain", in_vain(ready(), "Connect"), wait_for(reason::kNoEffect), "Resuming",
     "False", "NoEffect", Writes::kStatus, warning("NoEffect", "Wait", "why"), 2'000ms},
    {"for_the_executors_answer",
     busy(ready(), "AskExecutor"),
     Wait{},
     "Running",
     "True",
     "Ready",
     Writes::kNo,
     {},
     2'000ms},
    {"for_the_executors_answer_while_deleting",
     busy(deleting(ready()), "AskExecutor"),
     Wait{},
     "Deleting",
     "False",
     "Deleting",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_an_executor_that_was_gone",
     busy(gone(), "Prepare"),
     Wait{},
     "Preparing",
     "False",
     "ExecutorGone",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_pause",
     busy(ready(), "Pause"),
     Wait{},
     "Pausing",
     "False",
     "Pausing",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_resume",
     busy(ready(), "Connect"),
     Wait{},
     "Resuming",
     "False",
     "Resuming",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_create_while_deleting",
     busy(deleting(recorded()), "Create"),
     Wait{},
     "Deleting",
     "False",
     "Deleting",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_place",
     recorded(),
     wait_for(reason::kProviderQuotaExceeded),
     "Pending",
     "False",
     "ProviderQuotaExceeded",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_silent_provider_unbound",
     recorded(),
     wait_for(reason::kProviderUnavailable),
     "Pending",
     "False",
     "ProviderUnavailable",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_silent_provider_bound",
     ready(),
     wait_for(reason::kProviderUnavailable),
     "Unknown",
     "Unknown",
     "ProviderUnavailable",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_silent_executor",
     bound(),
     wait_for(reason::kExecutorNotAnswering),
     "Preparing",
     "False",
     "ExecutorNotAnswering",
     Writes::kStatus,
     {},
     2'000ms},
    {"for_a_person", recorded(), wait_for(reason::kTemplateNotFound, true), "Stalled", "False",
     "TemplateNotFound", Writes::kStatus, warning("TemplateNotFound", "Wait", "why"), kNever},
    {"for_what_is_lost", ready(), wait_for(reason::kLost, true), "Lost", "False", "Lost",
     Writes::kStatus, warning("Lost", "Wait", "why"), kNever},
    {"while_it_ends",
     ended(),
     wait_for(reason::kProviderUnavailable),
     "Terminating",
     "Unknown",
     "ProviderUnavailable",
     Writes::kStatus,
     {},
     2'000ms},

    // Deleting.
    {"a_look_while_deleting", deleting(ready()), Look{}, "Deleting", "False", "Deleting"},
    {"release", deleting(ready()), Release{"sb-1"}, "Deleting", "False", "Releasing",
     Writes::kStatus, normal("Released", "Release", "E2B sandbox sb-1")},
    {"leave", deleting(ready()), Leave{"sb-1"}, "Deleting", "False", "Releasing", Writes::kStatus},
    {"remove_finalizer",
     deleting(ready()),
     RemoveFinalizer{},
     "Deleting",
     "False",
     "Deleting",
     Writes::kNo,
     {},
     kNever},
    {"delete_object",
     ended(),
     DeleteObject{},
     "Preparing",
     "False",
     "Preparing",
     Writes::kNo,
     {},
     kNever},
};

const api::Condition* ready_of(const Report& news) {
  return api::find_condition(news.status, api::condition::kReady);
}

class ReportOf : public testing::TestWithParam<Case> {};

TEST_P(ReportOf, TellsWhatWasDone) {
  const Case& c = GetParam();
  const Report news = report(c.seen, c.action, {});
  EXPECT_EQ(news.status.state, c.state);
  ASSERT_TRUE(ready_of(news));
  EXPECT_EQ(ready_of(news)->status, c.ready);
  EXPECT_EQ(ready_of(news)->reason, c.reason);
  EXPECT_EQ(news.write, c.writes == Writes::kStatus);
  EXPECT_EQ(news.event, c.event) << (news.event ? news.event->reason + ": " + news.event->note
                                                : "");
  EXPECT_EQ(news.requeue, (kube::Requeue{.after = c.again}));
}

TEST_P(ReportOf, TellsAFailureAndChangesNothing) {
  const Case& c = GetParam();
  const base::Error error{base::ErrorCode::kUnavailable, "no answer"};
  const Report news = report(c.seen, c.action, {.error = error});
  const std::string name(name_of(c.action));
  EXPECT_EQ(news.event, (api::Event{"Warning", name + "Failed", name, "no answer"}));
  EXPECT_TRUE(news.requeue.failed);
  EXPECT_FALSE(news.write);
}

TEST_P(ReportOf, LooksAtAnOperationWhenItWouldBeSlow) {
  const Case& c = GetParam();
  EXPECT_EQ(report(c.seen, c.action, {.begun = true}).requeue, (kube::Requeue{.after = kSlowStep}));
}

TEST_P(ReportOf, NeverWritesOverAnObjectThatItsOwnStepHasChanged) {
  EXPECT_FALSE(report(GetParam().seen, GetParam().action, {.written = true}).write);
}

TEST_P(ReportOf, WaitsForTheDiskOnlyWithWhatNoLookTellsAgain) {
  static const std::set<std::string_view> kRecords = {
      "RecordIncarnation", "RecordRun", "RecordPausedBy", "RecordEnding", "RecordTerminated"};
  using enum api::ResourceStore::Durability;
  const bool waits = kRecords.contains(name_of(GetParam().action));
  EXPECT_EQ(report(GetParam().seen, GetParam().action, {}).durability, waits ? kNow : kSoon);
}

TEST_P(ReportOf, SpeaksOfTheGenerationThatWasSeen) {  // I-OBSGEN
  Observation seen = GetParam().seen;
  seen.wanted.metadata.generation = 7;
  seen.wanted.status.observed_generation = 6;
  const Report news = report(seen, GetParam().action, {});
  EXPECT_EQ(news.status.observed_generation, 7);
  for (const auto& condition : news.status.conditions)
    EXPECT_EQ(condition.observed_generation, 7) << condition.type;
}

TEST_P(ReportOf, ChangesNothingTheSecondTime) {  // I-NOFLAP
  Observation seen = GetParam().seen;
  seen.wanted.status = report(seen, GetParam().action, {}).status;
  if (std::holds_alternative<RecordIncarnation>(GetParam().action) ||
      std::holds_alternative<RecordTerminated>(GetParam().action))
    return;  // Each of them adds something, and is decided once.
  seen.wall += 1min;
  seen.now += 1min;
  const Report again = report(seen, GetParam().action, {});
  EXPECT_EQ(api::to_json(again.status), api::to_json(seen.wanted.status));
}

INSTANTIATE_TEST_SUITE_P(, ReportOf, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Report, IsTabledForEveryAction) {
  std::set<std::string_view> tabled;
  for (const Case& c : kCases) tabled.insert(name_of(c.action));
  EXPECT_EQ(tabled.size(), std::variant_size_v<Action>);
}

TEST(Report, SaysTruthsThatKubernetesToolsRead) {
  const auto word = [](const Report& news, std::string_view type) {
    const auto* found = api::find_condition(news.status, type);
    return found ? found->status + " " + found->reason : "";
  };
  const Report running = report(ready(), Keep{}, {});
  EXPECT_EQ(word(running, api::condition::kReconciling), "False Ready");
  EXPECT_EQ(word(running, api::condition::kStalled), "False Ready");
  EXPECT_EQ(word(running, api::condition::kBound), "True Bound");
  EXPECT_EQ(word(running, api::condition::kPrepared), "True Prepared");
  EXPECT_EQ(word(running, api::condition::kPaused), "False Running");
  EXPECT_EQ(word(running, api::condition::kCapacityAvailable), "True Ready");
  EXPECT_EQ(word(running, api::condition::kDeleting), "");
  EXPECT_EQ(word(report(gone(), Prepare{"sb-1"}, {}), api::condition::kPrepared),
            "False ExecutorGone");
  EXPECT_EQ(
      word(report(bound(), wait_for(reason::kExecutorNotOurs), {}), api::condition::kPrepared),
      "False ExecutorNotOurs");
  EXPECT_EQ(word(report(bound(), Prepare{"sb-1"}, {}), api::condition::kPrepared),
            "False Preparing");
  const Report stalled = report(recorded(), wait_for(reason::kTemplateNotFound, true), {});
  EXPECT_EQ(word(stalled, api::condition::kReconciling), "False TemplateNotFound");
  EXPECT_EQ(word(stalled, api::condition::kStalled), "True TemplateNotFound");
  EXPECT_EQ(word(stalled, api::condition::kBound), "False Pending");
  const Report full = report(recorded(), wait_for(reason::kProviderQuotaExceeded), {});
  EXPECT_EQ(word(full, api::condition::kCapacityAvailable), "False ProviderQuotaExceeded");
  EXPECT_EQ(word(report(deleting(ready()), Look{}, {}), api::condition::kDeleting),
            "True Deleting");
  for (const Action& action : {Action(Release{"sb-1"}), Action(Leave{"sb-1"})})
    EXPECT_EQ(word(report(deleting(ready()), action, {}), api::condition::kDeleting),
              "True Releasing");
}

TEST(Report, TellsOfAStandstillOnce) {
  Observation seen = recorded();
  const Action stalled = wait_for(reason::kTemplateNotFound, true);
  seen.wanted.status = report(seen, stalled, {}).status;
  EXPECT_FALSE(report(seen, stalled, {}).event);
}

TEST(Report, NamesAStepThatIsSlowAndTellsOfItOnce) {
  const auto told = [](const Observation& seen) {
    const Report news = report(seen, Wait{}, {});
    return std::pair(ready_of(news)->message.str(), news.event.has_value());
  };
  const std::string brief = "the executor is being started";
  const std::string named = brief + ": sending the executor takes longer than 10 s";
  const Observation preparing = busy(bound(), "Prepare");
  EXPECT_EQ(told(preparing), std::pair(brief, false));
  EXPECT_EQ(told(slow(preparing, 9'999ms)), std::pair(brief, false));
  EXPECT_EQ(told(slow(preparing, 10s)), std::pair(named, true));
  EXPECT_EQ(told(slow(preparing, 60s, true)), std::pair(named, false));
  EXPECT_FALSE(told(slow(bound(), 60s)).second) << "nothing is under way any more";
}

TEST(Report, KeepsTheLastNoticesAndNumbersThemOn) {
  Observation seen = ready();
  for (int i = 0; i < 12; ++i)
    seen.wanted.status =
        report(seen, RecordIncarnation{i + 2, "notice " + std::to_string(i + 1)}, {}).status;
  const auto& notices = seen.wanted.status.notices;
  ASSERT_EQ(notices.size(), api::kNoticesMax);
  EXPECT_EQ(notices.front().number, 3);
  EXPECT_EQ(notices.back().number, 12);
  EXPECT_EQ(notices.back().text, "notice 12");
}

TEST(Report, TellsOfTheEndOfWhatItCouldNotBind) {
  const Report news = report(recorded(), Bind{"sb-1", kAttempt}, {.begun = true});
  EXPECT_EQ(news.event, (api::Event{"Normal", "Killing", "Bind", "E2B sandbox sb-1"}));
  EXPECT_FALSE(news.write);
}

TEST(Report, BindsAsTheFirstIncarnationOfItsEpoch) {
  Observation seen = recorded();
  seen.provider->spec.data_url = "http://data";
  const auto first = bound_status(seen, {"sb-1", kAttempt});
  EXPECT_EQ(first.sandbox_id, "sb-1");
  EXPECT_EQ(first.epoch, 1);
  EXPECT_EQ(first.incarnation, 1);
  EXPECT_EQ(first.endpoint_url, "http://data");
  EXPECT_EQ(api::find_condition(first, api::condition::kBound)->status, "True");
  seen.wanted.status = first;
  seen.wanted.status.run = 4;
  const auto next = bound_status(seen, {"sb-2", {"n2", 2, 0}});
  EXPECT_EQ(next.epoch, 2);
  EXPECT_EQ(next.incarnation, 2);
  EXPECT_EQ(next.run, 0);
}

TEST(Report, FollowsTheProvidersRouter) {
  Observation seen = recorded();
  seen.provider->spec.data_url = "http://data";
  seen.provider->spec.routing = api::Routing::kSubdomain;
  seen.wanted.status = bound_status(seen, {"sb-1", kAttempt});
  seen.provider->spec.data_url = "http://moved";
  seen.provider->spec.routing = api::Routing::kHeader;
  const Report moved = report(seen, Keep{}, {});
  EXPECT_TRUE(moved.write);
  EXPECT_EQ(moved.status.endpoint_url, "http://moved");
  EXPECT_EQ(moved.status.endpoint_routing, "Header");

  seen.wanted.status = moved.status;
  seen.provider.reset();
  EXPECT_EQ(report(seen, wait_for(reason::kProviderNotFound), {}).status.endpoint_url,
            "http://moved");
  EXPECT_EQ(report(fresh(), Look{}, {}).status.endpoint_routing, "") << "nothing to reach yet";
}

TEST(Report, LeavesTheEndpointOfWhatHasEnded) {
  Observation seen = ended();
  seen.wanted.status.terminated_time = kWall;
  seen.wanted.status.endpoint_url = "http://data";
  seen.provider->spec.data_url = "http://moved";
  EXPECT_EQ(report(seen, Keep{}, {}).status.endpoint_url, "http://data");
}

TEST(Report, FollowsTheDaemonThatAResumeBrings) {
  const auto version = [](const Observation& seen) {
    return report(seen, Keep{}, {}).status.envd_version;
  };
  Observation seen = ready();
  seen.memory.handle = e2b::Handle{.id = "sb-1", .envd_version = "0.6.12"};
  EXPECT_EQ(version(seen), "0.6.12");
  seen.memory.handle->envd_version = "0.6.13";
  EXPECT_EQ(version(seen), "0.6.13");
  seen.wanted.status.envd_version = "0.6.13";
  seen.memory.handle->id = "sb-0";
  EXPECT_EQ(version(seen), "0.6.13") << "another's handle tells nothing";

  auto newer = sandbox("sb-1");
  newer.envd_version = "0.7.0";
  EXPECT_EQ(version(listed(ready(), {newer})), "0.7.0");
}

// Why what idles is awake is told once, and stands while it is tried again.
TEST(Report, TellsOnceWhatKeepsASandboxFromItsRest) {
  Observation seen = ready_to_idle();
  seen.memory.idle.trouble =
      IdleTrouble{.step = IdleTrouble::Step::kIdleAction, .what = "500: internal error"};
  const std::string why = "it idles, and could not be paused: 500: internal error";
  const auto pass = [&seen](const Action& action) {
    const Report news = report(seen, action, {});
    if (news.write) seen.wanted.status = news.status;
    return news;
  };
  const auto paused = [&seen] {
    const auto* found = api::find_condition(seen.wanted.status, api::condition::kPaused);
    return found->status + " " + found->reason + ": " + found->message;
  };
  EXPECT_EQ(pass(Keep{}).event, warning("IdleActionFailed", "Keep", why.c_str()));
  EXPECT_EQ(paused(), "False IdleActionFailed: " + why);
  EXPECT_EQ(pass(Keep{}).event, std::nullopt);
  pass(RecordPausedBy{api::PausedBy::kIdle});
  EXPECT_EQ(seen.wanted.status.state, "Pausing");
  EXPECT_EQ(paused(), "False IdleActionFailed: " + why);
  EXPECT_EQ(pass(Keep{}).event, std::nullopt) << "it is paused";
  EXPECT_EQ(paused(), "True Idle: ");
  seen.wanted.status.paused_by = api::PausedBy::kNobody;
  seen.memory.idle = {};
  pass(Keep{});
  EXPECT_EQ(paused(), "False Running: ");
}

// A controller that starts again must ask the executor, which takes a moment; watchers of Ready are
// not told of a moment that changes nothing.
TEST(Report, StaysReadyWhileARestartedControllerAsks) {
  const Wait busy{.reason = std::string(api::reason::kPreparing)};
  Observation seen = ready();
  seen.wanted.status = report(seen, Keep{}, {}).status;
  seen.operation = "Prepare";
  const auto told = [&] {
    const api::SandboxStatus status = report(seen, busy, {}).status;
    return api::find_condition(status, api::condition::kReady)->status;
  };

  seen.memory.executor = {};
  EXPECT_EQ(told(), "True");
  seen.memory.executor.kind = ExecutorView::Kind::kSilent;
  EXPECT_EQ(told(), "False");

  seen.memory.executor = {};
  seen.operation = "Connect";
  EXPECT_EQ(told(), "False");
}

}  // namespace
}  // namespace controller
