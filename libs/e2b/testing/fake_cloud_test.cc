#include "libs/e2b/testing/fake_cloud.h"

#include <gtest/gtest.h>

#include <list>

#include "libs/base/testing/fake_clock.h"
#include "libs/e2b/testing/cloud_contract.h"

namespace e2b {
namespace {

using base::ErrorCode;
using base::Seconds;

struct FakeWorld final : CloudWorld {
  FakeWorld() { fake_.refuse_template("no-such-template"); }
  Cloud& cloud() override { return fake_; }
  bool eventually(const std::function<bool()>& fact, Seconds patience) override {
    for (Seconds waited{0}; waited <= patience; waited += Seconds(1)) {
      if (fact()) return true;
      clock_.advance(Seconds(1));
    }
    return false;
  }
  base::FakeClock clock_;
  FakeCloud fake_{clock_};
};

INSTANTIATE_TEST_SUITE_P(All, CloudContract,
                         testing::Values(CloudKind{"Fake",
                                                   [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& info) { return info.param.name; });

class Fake : public testing::Test {
 protected:
  static NewSandbox wanted(const std::string& uid = "uid-1") {
    return {.template_id = "base", .timeout = Seconds(60), .metadata = {{"sandfleet.uid", uid}}};
  }
  std::string create(const NewSandbox& wanted) { return cloud_.create(wanted, {})->id; }
  void script(Operation operation, Fault::Kind kind, Seconds late = Seconds(0)) {
    cloud_.script(operation, {kind, late});
  }

  base::FakeClock clock_;
  FakeCloud cloud_{clock_, FakeCloud::Callbacks::kByHand};
};

TEST_F(Fake, ACreateFailsInEveryWay) {
  using Kind = CreateFailure::Kind;
  struct Row {
    Fault::Kind fault;
    Kind kind;
    std::size_t created;
  };
  const Row rows[] = {
      {Fault::Kind::kNotSent, Kind::kNotSent, 0},
      {Fault::Kind::kRefused503, Kind::kCapacity, 0},
      {Fault::Kind::kRateLimited, Kind::kRate, 0},
      {Fault::Kind::kFailed500, Kind::kAmbiguous, 0},
      {Fault::Kind::kReplyLost, Kind::kAmbiguous, 1},
      {Fault::Kind::kLate, Kind::kAmbiguous, 0},
  };
  for (const Row& row : rows) {
    const std::size_t before = cloud_.total_created();
    script(Operation::kCreate, row.fault, Seconds(30));
    const auto made = cloud_.create(wanted(), {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, row.kind);
    EXPECT_EQ(cloud_.total_created() - before, row.created);
  }
  clock_.advance(Seconds(30));
  EXPECT_EQ(cloud_.live_of("uid-1").size(), 2u);  // The lost one, and the late one now.
}

TEST_F(Fake, ALateEffectLandsAtItsTimeWhoeverLooks) {
  const std::string id = create(wanted());
  script(Operation::kKill, Fault::Kind::kLate, Seconds(5));
  EXPECT_FALSE(cloud_.kill(id, {}));
  clock_.advance(Seconds(4));
  EXPECT_TRUE(cloud_.find(id));
  clock_.advance(Seconds(1));
  EXPECT_FALSE(cloud_.find(id));
}

TEST_F(Fake, AListLagsBehindTheWorld) {
  cloud_.set_list_lag(Seconds(10), Seconds(20));
  const std::string id = create(wanted());
  EXPECT_TRUE(cloud_.list({}, {})->value.empty());
  EXPECT_TRUE(cloud_.get(id, {})->value);
  clock_.advance(Seconds(10));
  EXPECT_EQ(cloud_.list({}, {})->value.size(), 1u);
  ASSERT_TRUE(cloud_.kill(id, {}));
  clock_.advance(Seconds(19));
  EXPECT_EQ(cloud_.list({}, {})->value.size(), 1u);
  clock_.advance(Seconds(1));
  EXPECT_TRUE(cloud_.list({}, {})->value.empty());
}

TEST_F(Fake, AFailedPauseFallsBackToTheOlderSnapshot) {
  const std::string id = create(wanted());
  ASSERT_TRUE(cloud_.pause(id, {}));
  const auto saved = cloud_.find(id)->end_at;
  clock_.advance(Seconds(10));
  ASSERT_TRUE(cloud_.connect(id, Seconds(60), {}));
  clock_.advance(Seconds(10));
  script(Operation::kPause, Fault::Kind::kRolledBack);
  EXPECT_FALSE(cloud_.pause(id, {}));
  const auto info = cloud_.find(id);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state, State::kPaused);
  EXPECT_EQ(info->end_at, saved);
  EXPECT_LT(*info->end_at, *info->started_at);
}

TEST_F(Fake, AFailedFirstPauseLosesTheSandbox) {
  const std::string id = create(wanted());
  script(Operation::kPause, Fault::Kind::kRolledBack);
  EXPECT_FALSE(cloud_.pause(id, {}));
  EXPECT_FALSE(cloud_.find(id));
}

TEST_F(Fake, AKillByTimeoutLeavesAnOlderSnapshot) {
  const std::string id = create(wanted());
  ASSERT_TRUE(cloud_.pause(id, {}));
  ASSERT_TRUE(cloud_.connect(id, Seconds(30), {}));
  clock_.advance(Seconds(31));
  EXPECT_EQ(cloud_.find(id)->state, State::kPaused);
}

TEST_F(Fake, RefusalsLeaveThingsAsTheyWere) {
  const std::string id = create(wanted());
  script(Operation::kPause, Fault::Kind::kRefused503);
  EXPECT_EQ(cloud_.pause(id, {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(cloud_.find(id)->state, State::kRunning);
  script(Operation::kKill, Fault::Kind::kKept);
  EXPECT_EQ(*cloud_.kill(id, {}), KillAnswer::kKilled);
  EXPECT_TRUE(cloud_.find(id));
  script(Operation::kGet, Fault::Kind::kFalseAbsent);
  EXPECT_FALSE(cloud_.get(id, {})->value);
  EXPECT_TRUE(cloud_.get(id, {})->value);
}

TEST_F(Fake, HasAQuotaAndALongestRun) {
  cloud_.set_quota(1);
  cloud_.set_longest_run(Seconds(100));
  const std::string id = create(wanted());
  EXPECT_EQ(cloud_.create(wanted(), {}).error().kind, CreateFailure::Kind::kQuota);
  clock_.advance(Seconds(50));
  ASSERT_TRUE(cloud_.extend(id, Seconds(90), {}));
  clock_.advance(Seconds(50));
  EXPECT_FALSE(cloud_.find(id));
  EXPECT_TRUE(cloud_.create(wanted(), {}));
}

TEST_F(Fake, ChancesAreTheSameForTheSameSeed) {
  const auto outcomes = [](std::uint64_t seed) {
    base::FakeClock clock;
    FakeCloud cloud(clock, FakeCloud::Callbacks::kByHand);
    cloud.seed(seed);
    cloud.chance(Operation::kCreate, {Fault::Kind::kReplyLost}, 0.5);
    std::string text;
    for (int i = 0; i < 64; ++i) text += cloud.create(wanted(), {}) ? '+' : '-';
    return text;
  };
  EXPECT_EQ(outcomes(7), outcomes(7));
  EXPECT_NE(outcomes(7), outcomes(8));
  EXPECT_NE(outcomes(7).find('+'), std::string::npos);
  EXPECT_NE(outcomes(7).find('-'), std::string::npos);
}

TEST_F(Fake, HooksMayCrashTheCallerOnEitherSideOfTheEffect) {
  struct Crash {};
  cloud_.before([](Operation, const std::string&) { throw Crash{}; });
  EXPECT_THROW((void)cloud_.create(wanted(), {}), Crash);
  EXPECT_EQ(cloud_.total_created(), 0u);
  cloud_.before(nullptr);
  std::string id;
  cloud_.after([&](Operation, const std::string& made) {
    id = made;
    throw Crash{};
  });
  EXPECT_THROW((void)cloud_.create(wanted(), {}), Crash);
  cloud_.after(nullptr);
  EXPECT_TRUE(cloud_.find(id));
}

TEST_F(Fake, TellsOfEveryChange) {
  std::vector<Change> changes;
  cloud_.on_change([&](const std::string&, Change change) { changes.push_back(change); });
  NewSandbox pausing = wanted();
  pausing.auto_pause = true;
  const std::string id = create(pausing);
  clock_.advance(Seconds(61));
  ASSERT_TRUE(cloud_.connect(id, Seconds(60), {}));
  ASSERT_TRUE(cloud_.kill(id, {}));
  EXPECT_EQ(changes,
            (std::vector{Change::kCreated, Change::kPaused, Change::kResumed, Change::kKilled}));
}

TEST_F(Fake, FindsTwoThatLiveForOne) {
  const std::string first = create(wanted("a"));
  create(wanted("b"));
  EXPECT_TRUE(cloud_.violations().empty());
  clock_.advance(Seconds(5));
  const std::string second = create(wanted("a"));
  const auto lasting = cloud_.violations();
  ASSERT_EQ(lasting.size(), 1u);
  EXPECT_EQ(lasting[0].value, "a");
  EXPECT_EQ(lasting[0].until, std::nullopt);
  clock_.advance(Seconds(10));
  ASSERT_TRUE(cloud_.kill(second, {}));
  EXPECT_EQ(cloud_.violations().size(), 1u);
  EXPECT_TRUE(cloud_.violations(Seconds(10)).empty());
  EXPECT_EQ(cloud_.violations(Seconds(9)).size(), 1u);
  ASSERT_TRUE(cloud_.kill(first, {}));
  create(wanted("a"));
  EXPECT_EQ(cloud_.violations().size(), 1u);
}

TEST_F(Fake, KeepsALogAndItsOwnTime) {
  const auto before = cloud_.provider_time();
  clock_.jump_wall(std::chrono::hours(48));
  clock_.advance(Seconds(3));
  EXPECT_EQ(cloud_.provider_time(), before + Seconds(3));
  const std::string id = create(wanted());
  script(Operation::kExtend, Fault::Kind::kFailed500);
  EXPECT_FALSE(cloud_.extend(id, Seconds(60), {}));
  const auto calls = cloud_.calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].operation, Operation::kCreate);
  EXPECT_EQ(calls[0].id, id);
  EXPECT_EQ(calls[1].at, clock_.now());
  EXPECT_EQ(calls[1].failed, ErrorCode::kUnavailable);
  EXPECT_EQ(cloud_.count(Operation::kExtend), 1u);
}

TEST_F(Fake, CallbacksWaitForTheHandThatRunsThem) {
  const std::string id = create(wanted());
  bool called = false;
  cloud_.start_extend(id, Seconds(600),
                      [&](base::Result<base::Done> result) { called = result.ok(); });
  EXPECT_FALSE(called);
  EXPECT_EQ(cloud_.run_callbacks(), 1u);
  EXPECT_TRUE(called);
}

TEST_F(Fake, TokensRotateOnResumeAndMayBeHidden) {
  const auto made = cloud_.create(wanted(), {});
  ASSERT_TRUE(cloud_.pause(made->id, {}));
  const auto connected = cloud_.connect(made->id, Seconds(60), {});
  EXPECT_NE(connected->handle.envd_access_token, made->envd_access_token);
  EXPECT_EQ(**cloud_.handle(made->id, {}), connected->handle);
  cloud_.hide_tokens(true);
  EXPECT_EQ(*cloud_.handle(made->id, {}), std::nullopt);
}

TEST(FakeThreads, ManyMayUseOneCloud) {
  base::FakeClock clock;
  FakeCloud cloud(clock);
  std::atomic<int> extended = 0;
  {
    std::list<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 50; ++k) {
          const std::string uid = std::to_string(i) + "-" + std::to_string(k);
          const auto made =
              cloud.create({.template_id = "base", .metadata = {{"sandfleet.uid", uid}}}, {});
          cloud.start_extend(made->id, Seconds(600), [&](auto) { ++extended; });
          clock.advance(base::Milliseconds(1));
          (void)cloud.list({}, {});
          if (k % 2) (void)cloud.kill(made->id, {});
        }
      });
  }
  EXPECT_EQ(cloud.live().size(), 100u);
  EXPECT_TRUE(cloud.violations().empty());
  while (extended < 200) std::this_thread::yield();
}

}  // namespace
}  // namespace e2b
