#include "controller/gate/gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "libs/base/testing/fake_clock.h"
#include "libs/e2b/testing/fake_cloud.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

class GateTest : public testing::Test {
 protected:
  // The order in which the calls of a crowd pass, all of which wait for the gate's only place
  // before it is free.
  std::vector<e2b::Operation> order_of(const std::vector<std::function<void(Gate&)>>& crowd,
                                       GateOptions options) {
    options.in_flight_max = 1;
    Gate gate(cloud_, clock_, options);
    std::latch begun(1), go(1);
    std::vector<e2b::Operation> order;
    cloud_->before([&](e2b::Operation operation, const std::string&) {
      if (operation != e2b::Operation::kList) return order.push_back(operation);
      begun.count_down();
      go.wait();
    });
    {
      std::jthread first([&] { (void)gate.as(Priority::kPoll).list({}, {}); });
      begun.wait();
      std::vector<std::jthread> waiting;
      for (const auto& call : crowd) {
        waiting.emplace_back([&] { call(gate); });
        while (gate.waiting() < waiting.size()) std::this_thread::yield();
      }
      go.count_down();
    }
    cloud_->before({});
    return order;
  }

  base::FakeClock clock_;
  std::shared_ptr<e2b::FakeCloud> cloud_ = std::make_shared<e2b::FakeCloud>(clock_);
  Gate gate_{cloud_, clock_};
};

TEST_F(GateTest, HonoursRetryAfterForEveryCaller) {  // I-429R
  const auto id = cloud_->plant({.template_id = "base"});
  cloud_->script(e2b::Operation::kGet, {e2b::Fault::Kind::kRateLimited});
  EXPECT_EQ(gate_.as(Priority::kPoll).get(id, {}).error().code, base::ErrorCode::kRateLimited);
  const auto before = cloud_->calls().size();
  EXPECT_EQ(gate_.as(Priority::kDelete).kill(id, {}).error().code, base::ErrorCode::kRateLimited);
  EXPECT_FALSE(gate_.as(Priority::kCreate).create({.template_id = "base"}, {}));
  EXPECT_EQ(cloud_->calls().size(), before);
  clock_.advance(1s);
  EXPECT_TRUE(gate_.as(Priority::kDelete).kill(id, {}));
}

TEST_F(GateTest, LetsAQuotaHoldBackCreatesOnlyAndAKillFreeThem) {  // I-429Q
  int woken = 0;
  Gate gate(cloud_, clock_, {}, [&] { ++woken; });
  cloud_->set_quota(1);
  const auto id = cloud_->plant({.template_id = "base"});
  EXPECT_FALSE(gate.no_room());
  const auto full = gate.as(Priority::kCreate).create({.template_id = "base"}, {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, e2b::CreateFailure::Kind::kQuota);
  const auto held = gate.as(Priority::kCreate).create({.template_id = "base"}, {});
  ASSERT_FALSE(held);
  EXPECT_TRUE(Gate::kept_for_room(held.error()));
  EXPECT_FALSE(Gate::kept_for_room(full.error())) << "it was sent";
  EXPECT_EQ(cloud_->count(e2b::Operation::kCreate), 1u);
  ASSERT_TRUE(gate.no_room());
  EXPECT_EQ(gate.no_room()->retry_after, GateOptions{}.quota_hold);
  EXPECT_EQ(gate.no_room()->message, full.error().message) << "the provider's own words";
  EXPECT_EQ(woken, 0);
  EXPECT_TRUE(gate.as(Priority::kDelete).kill(id, {}));
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(gate.no_room());
  EXPECT_TRUE(gate.as(Priority::kCreate).create({.template_id = "base"}, {}));
}

TEST_F(GateTest, LetsAPauseMakeRoomToo) {  // I-429Q
  cloud_->set_quota(1);
  const auto id = cloud_->plant({.template_id = "base"});
  EXPECT_FALSE(gate_.as(Priority::kCreate).create({.template_id = "base"}, {}));
  EXPECT_TRUE(gate_.as(Priority::kPause).pause(id, {}));
  EXPECT_TRUE(gate_.as(Priority::kCreate).create({.template_id = "base"}, {}));
}

void get(Gate& gate) { (void)gate.as(Priority::kPoll).get("sb-1", {}); }
void kill(Gate& gate) { (void)gate.as(Priority::kDelete).kill("sb-9", {}); }
void create(Gate& gate) { (void)gate.as(Priority::kCreate).create({.template_id = "b"}, {}); }
void extend(Gate& gate) { (void)gate.as(Priority::kHeartbeat).extend("sb-1", 60s, {}); }

using enum e2b::Operation;

TEST_F(GateTest, LetsTheMoreUrgentGoFirst) {
  EXPECT_EQ(order_of({get, extend}, {}), (std::vector{kExtend, kGet}));
}

TEST_F(GateTest, LetsAFloodOfTheMoreUrgentStarveNobody) {
  std::vector<std::function<void(Gate&)>> crowd(8, kill);
  crowd.insert(crowd.end(), {get, create});
  EXPECT_EQ(order_of(crowd, {.passed_over_max = 3}),
            (std::vector{kKill, kKill, kKill, kCreate, kGet, kKill, kKill, kKill, kKill, kKill}));
}

// What holds when a call gets in line need not hold when it is its turn.
TEST_F(GateTest, AsksForTheConditionOfACallWhenItIsItsTurn) {
  bool killed = false;
  base::Result<e2b::PauseAnswer> paused = e2b::PauseAnswer::kPaused;
  const auto pause_first = [&](Gate& gate) {
    const auto lives = [&]() -> base::Result<base::Done> {
      if (!killed) return base::Done{};
      return base::Error{base::ErrorCode::kRateLimited, "it was killed", 60s};
    };
    paused = gate.pause_if(lives, "sb-1", {});
  };
  const auto kill_meanwhile = [&](Gate& gate) {
    (void)gate.kill_if([&] { return killed = true, base::Done{}; }, "sb-1", {});
  };
  EXPECT_EQ(order_of({pause_first, kill_meanwhile, get}, {}), (std::vector{kKill, kGet}))
      << "the pause is not sent, and its error is no word of the provider's";
  EXPECT_EQ(paused.error().message, "it was killed");
  EXPECT_TRUE(gate_.pause_if([] { return base::Done{}; }, cloud_->plant({.template_id = "b"}), {}));
}

TEST_F(GateTest, GivesUpWaitingWhenStopped) {
  Gate gate(cloud_, clock_, {.in_flight_max = 0});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(gate.as(Priority::kPoll).get("x", stop.get_token()).error().code,
            base::ErrorCode::kCancelled);
}

}  // namespace
}  // namespace controller
