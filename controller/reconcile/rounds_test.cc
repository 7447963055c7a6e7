#include "controller/reconcile/rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <queue>
#include <random>
#include <vector>

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Moment;
using Kind = ExecutorView::Kind;

constexpr Moment kNow{std::chrono::hours(1)};

struct Case {
  const char* name;
  int closed;  // Answers before this one that found nobody.
  base::Result<wire::Health> answer;
  Kind kind;
  int closed_after;
  base::Milliseconds again;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

base::Error error(ErrorCode code) { return {code, "why"}; }
const wire::Health kWell{.instance = "i-2", .identity = {"uid-1", 1, 1, 1}};

const Case kCases[] = {
    {"well", 0, kWell, Kind::kAnswering, 0, 5min},
    {"well_again", 1, kWell, Kind::kAnswering, 0, 5min},
    {"nobody_listens", 0, error(ErrorCode::kNotFound), Kind::kAnswering, 1, 2s},
    {"nobody_listens_still", 1, error(ErrorCode::kNotFound), Kind::kGone, 2, 5min},
    {"refuses", 0, error(ErrorCode::kDenied), Kind::kRefuses, 0, 5min},
    // Unknown is never absent.
    {"silent", 0, error(ErrorCode::kUnavailable), Kind::kAnswering, 0, 5min},
    {"silent_after_nobody_listened", 1, error(ErrorCode::kUnavailable), Kind::kAnswering, 0, 5min},
    {"turned_away_by_an_edge", 1, error(ErrorCode::kConflict), Kind::kAnswering, 0, 5min},
    {"too_many_asks", 1, error(ErrorCode::kRateLimited), Kind::kAnswering, 0, 5min},
    {"an_odd_answer", 1, error(ErrorCode::kInvalid), Kind::kAnswering, 0, 5min},
    {"not_asked_at_all", 1, error(ErrorCode::kCancelled), Kind::kAnswering, 0, 5min},
};

class Heard : public testing::TestWithParam<Case> {};

TEST_P(Heard, ChangesWhatIsBelievedOnlyByProof) {
  const Case& c = GetParam();
  const ExecutorView before{.kind = Kind::kAnswering,
                            .sandbox_id = "sb-1",
                            .health = {.instance = "i-1"},
                            .ask_at = kNow,
                            .closed = c.closed};
  const ExecutorView after = heard(before, c.answer, kNow, kNow + 5min);
  EXPECT_EQ(after.kind, c.kind);
  EXPECT_EQ(after.closed, c.closed_after);
  EXPECT_EQ(after.ask_at, kNow + c.again);
  EXPECT_EQ(after.sandbox_id, "sb-1");
  EXPECT_EQ(after.health.instance, c.answer ? "i-2" : "i-1");
}

INSTANTIATE_TEST_SUITE_P(, Heard, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(DueAtOnce, BringsTheNextAskForwardAndNoneThatWaitsToBeCertain) {
  const auto due = [](base::Moment ask_at, int closed) {
    return due_at_once({.ask_at = ask_at, .closed = closed}, kNow).ask_at;
  };
  EXPECT_EQ(due(kNow + 300s, 0), kNow);
  EXPECT_EQ(due(kNow - 1s, 0), kNow - 1s);
  EXPECT_EQ(due(kNow + kAskAgain, 1), kNow + kAskAgain);
}

std::function<double()> chance() {
  return [random = std::minstd_rand(7)]() mutable {
    return std::uniform_real_distribution<>(0, 1)(random);
  };
}

TEST(Rounds, AreScatteredAroundTheirTime) {
  Rounds rounds({}, kNow, chance());
  Moment first = Moment::max(), last = Moment::min();
  for (int i = 0; i < 1'000; ++i) {
    const Moment next = rounds.next(kNow);
    first = std::min(first, next);
    last = std::max(last, next);
  }
  EXPECT_GE(first, kNow + 225s);
  EXPECT_LE(last, kNow + 375s);
  EXPECT_GT(last - first, 100s);
}

TEST(Rounds, ComeLaterWithEachFailure) {
  Rounds rounds({.every = 300s, .put_off = 15s}, kNow, [] { return 0.5; });
  std::vector<base::Milliseconds> after;
  for (const int failures : {1, 2, 3, 5, 6, 100})
    after.push_back(rounds.again(kNow, failures) - kNow);
  EXPECT_EQ(after, (std::vector<base::Milliseconds>{15s, 30s, 60s, 240s, 300s, 300s}));
}

TEST(Rounds, GiveNoMoreTurnsThanMayBeUnderWay) {
  Rounds rounds({.at_once = 2}, kNow, chance());
  auto one = rounds.take_turn(kNow), two = rounds.take_turn(kNow);
  EXPECT_TRUE(one && two);
  EXPECT_FALSE(rounds.take_turn(kNow + 10s)) << "both still wait for their answers";
  one.reset();
  EXPECT_TRUE(rounds.take_turn(kNow + 10s));
}

// Ten thousand that fall due at one moment, as after a long silence.
TEST(Rounds, AskAFleetThatIsDueAtOnceALittleAtATime) {
  constexpr int kFleet = 10'000;
  Rounds rounds({}, kNow, chance());
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> due;
  for (int i = 0; i < kFleet; ++i) due.push(kNow);
  std::map<std::int64_t, int> asked, looked;  // By second.
  Moment last = kNow;
  int answered = 0;
  while (!due.empty()) {
    const Moment now = due.top();
    due.pop();
    const auto second = std::chrono::floor<base::Seconds>(now - kNow).count();
    ++looked[second];
    if (!rounds.take_turn(now)) {
      due.push(rounds.put_off(now));
      continue;
    }
    ++asked[second];
    ++answered;
    last = std::max(last, now);
  }
  EXPECT_EQ(answered, kFleet);
  for (const auto& [second, count] : asked) EXPECT_LE(count, 60) << "in second " << second;
  for (const auto& [second, count] : looked)
    EXPECT_LE(count, second == 0 ? kFleet : 2'000) << "in second " << second;
  EXPECT_LT(last, kNow + 6min);
}

}  // namespace
}  // namespace controller
