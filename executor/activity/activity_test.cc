#include "executor/activity/activity.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>

namespace executor {
namespace {

using namespace std::chrono_literals;

constexpr base::Moment kStart(1000s);

// Looked at as often as an executor does.
void pass(Activity& activity, base::Moment& now, base::Milliseconds time) {
  for (const base::Moment end = now + time; now < end;) {
    now += 500ms;
    activity.look(now);
  }
}

// What happens in the minute before the controller asks, and how long it has been idle then.
struct Case {
  const char* name;
  void (*happens)(Activity&);
  base::Milliseconds idle;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
const Case kCases[] = {
    {"nothing", [](Activity&) {}, 60s},
    {"something_moved", [](Activity& activity) { activity.moved(); }, 59'500ms},
    {"a_request_was_at_work", [](Activity& activity) { const Activity::Work work(activity); },
     59'500ms},
};
class Idle : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, Idle, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

TEST_P(Idle, IsCountedFromWhatHappenedLast) {
  Activity activity(kStart);
  base::Moment now = kStart;
  EXPECT_EQ(activity.idle_for(now), 0ms);
  GetParam().happens(activity);
  pass(activity, now, 60s);
  EXPECT_EQ(activity.idle_for(now), GetParam().idle);
}

TEST(Activity, LastsForAsLongAsARequestIsAtWork) {
  Activity activity(kStart);
  base::Moment now = kStart;
  auto work = std::make_unique<Activity::Work>(activity);
  pass(activity, now, 600s);
  EXPECT_EQ(activity.idle_for(now), 0ms);
  work.reset();
  EXPECT_EQ(activity.idle_for(now + 1s), 0ms) << "its end is something, too";
  EXPECT_EQ(activity.idle_for(now + 2s), 1s);
}

// As those that a loop still holds when its program ends.
TEST(Activity, MayEndBeforeARequestThatIsAtWork) {
  auto activity = std::make_unique<Activity>(kStart);
  auto work = std::make_unique<Activity::Work>(*activity);
  activity.reset();
  work.reset();
}

TEST(Activity, TakesWhatWasFrozenForNothing) {
  Activity activity(kStart);
  EXPECT_EQ(activity.idle_for(kStart), 0ms);
  EXPECT_EQ(activity.idle_for(kStart + 1h), base::AwakeTime::kGapMax);
}

TEST(Activity, LooksAtItsMetersOnceForAnAnswer) {
  int looks = 0;
  Activity activity(kStart, {[&] { return base::Milliseconds(++looks); }});
  base::Moment now = kStart;
  activity.idle_for(now);
  pass(activity, now, Activity::kCpuLookEvery - 500ms);
  EXPECT_EQ(looks, 1);
  activity.idle_for(now + 500ms);
  EXPECT_EQ(looks, 2) << "the regular look was due as well";
}

// What one meter shows while it is asked once in ten seconds, and whether that is active.
struct Use {
  const char* name;
  base::Milliseconds each_time;
  bool active;
};
void PrintTo(const Use& one, std::ostream* out) { *out << one.name; }
const Use kUses[] = {
    {"none", 0ms, false},
    {"a_silent_server", 100ms, false},
    {"all_that_is_spared", 120ms, false},
    {"a_bit_more", 130ms, true},
    {"a_whole_core", 5s, true},
    {"less_than_before", -50ms, false},
};
class Cpu : public testing::TestWithParam<Use> {};
INSTANTIATE_TEST_SUITE_P(Of, Cpu, testing::ValuesIn(kUses),
                         [](const auto& each) { return each.param.name; });

TEST_P(Cpu, CountsWhereItIsWorthTheName) {
  base::Milliseconds used = 10s;
  Activity activity(kStart, {[] { return base::Milliseconds(7); }, [&] { return used; }});
  base::Moment now = kStart;
  activity.idle_for(now);
  for (int looks = 0; looks < 4; ++looks) {
    pass(activity, now, Activity::kCpuLookEvery - 500ms);
    used += GetParam().each_time;
    pass(activity, now, 500ms);  // And with it a look at the meters.
  }
  EXPECT_EQ(activity.idle_for(now), GetParam().active ? 0ms : 20s);
}

TEST(Activity, LooksAtMetersOnlyOnceSomebodyAsked) {
  int looks = 0;
  Activity activity(kStart, {[&] {
                      ++looks;
                      return base::Milliseconds(0);
                    }});
  base::Moment now = kStart;
  pass(activity, now, 60s);
  EXPECT_EQ(looks, 0);
  activity.idle_for(now);
  pass(activity, now, 60s);
  EXPECT_EQ(looks, 13);
}

TEST(Activity, KnowsNothingOfTheCpuTimeBeforeTheFirstQuestion) {
  Activity activity(kStart, {[] { return base::Milliseconds(0); }});
  base::Moment now = kStart;
  pass(activity, now, 60s);
  EXPECT_EQ(activity.idle_for(now), 0ms);
  pass(activity, now, 60s);
  EXPECT_EQ(activity.idle_for(now), 60s);
}

// A question right after another sees what began between the two, but for what is spared.
TEST(Activity, IsSeenByAQuestionAtAnyTime) {
  base::Milliseconds used{};
  Activity activity(kStart, {[&] { return used; }});
  base::Moment now = kStart;
  activity.idle_for(now);
  pass(activity, now, 60s);
  EXPECT_EQ(activity.idle_for(now), 60s);
  used += Activity::kCpuSpared + 1ms;
  EXPECT_EQ(activity.idle_for(now), 0ms);
}

}  // namespace
}  // namespace executor
