#include "controller/cluster/shard_leases.h"

#include <gmock/gmock.h>

#include <set>

#include "controller/cluster/testing/kept_objects.h"
#include "libs/base/testing/eventually.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

// The machine's clock, which a test may put forward for one of the controllers, as if that had been
// stopped.
class StoppedClock final : public base::Clock {
 public:
  base::Moment now() const override { return clock_.now() + ahead_.load(); }
  base::WallTime wall() const override { return clock_.wall(); }
  void skip(base::Milliseconds time) { ahead_ = ahead_.load() + time; }

 private:
  const base::SystemClock clock_;
  std::atomic<base::Milliseconds> ahead_{base::Milliseconds(0)};
};

class ShardLeasesTest : public testing::Test {
 protected:
  std::unique_ptr<ShardLeases> leases(const std::string& identity, int shards,
                                      const base::Clock& clock) {
    return std::make_unique<ShardLeases>(
        server_.client(), clock,
        ShardLeasesSettings{
            .space = "own", .prefix = "rel", .identity = identity, .shards = shards, .lease = 1s});
  }
  static std::size_t held_by(const ShardLeases& leases) {
    const auto held = leases.held();
    return static_cast<std::size_t>(
        std::ranges::count_if(held, [](const auto& each) { return each.second; }));
  }

  const base::SystemClock clock_;
  KeptObjects kept_;
  kube::FakeServer server_{[this](const net::Request& request) { return kept_.answer(request); }};
};

TEST_F(ShardLeasesTest, ActForTheProvidersOfTheShardsThatTheyHold) {
  std::mutex mutex;
  std::set<int> gained;
  const auto one = leases("one", 2, clock_);
  EXPECT_FALSE(one->may_act("default"));
  const base::Moment before = clock_.now();
  one->start({.gained = [&](int shard) {
    std::lock_guard lock(mutex);
    gained.insert(shard);
  }});
  ASSERT_TRUE(base::eventually([&] { return held_by(*one) == 2; }));
  EXPECT_THAT(one->held(), testing::UnorderedElementsAre(testing::Pair("rel-0-of-2", true),
                                                         testing::Pair("rel-1-of-2", true)));
  EXPECT_TRUE(one->may_act("default"));
  EXPECT_TRUE(one->may_act("another"));
  EXPECT_GE(one->since("default"), before);
  EXPECT_NE(one->is_of(0, "default"), one->is_of(1, "default"));
  EXPECT_TRUE(base::eventually([&] {
    std::lock_guard lock(mutex);
    return gained == std::set{0, 1};
  }));
  EXPECT_FALSE(one->end());
}

TEST_F(ShardLeasesTest, LeaveToOthersTheirShareAndTakeItWhenTheyGo) {
  const auto one = leases("one", 2, clock_);
  auto other = leases("other", 2, clock_);
  one->start({});
  other->start({});
  ASSERT_TRUE(base::eventually([&] { return held_by(*one) == 1 && held_by(*other) == 1; }));
  EXPECT_NE(one->may_act("default"), other->may_act("default"));
  other.reset();
  EXPECT_TRUE(base::eventually([&] { return held_by(*one) == 2; }));
  EXPECT_FALSE(one->end());
}

TEST_F(ShardLeasesTest, AreOverWhenAnotherTookOne) {  // I-LEAD
  StoppedClock clock;
  std::atomic<int> over = 0;
  const auto one = leases("one", 1, clock);
  one->start({.over = [&] { ++over; }});
  ASSERT_TRUE(base::eventually([&] { return held_by(*one) == 1; }));
  kept_.replace("/apis/coordination.k8s.io/v1/namespaces/own/leases/rel-0-of-1",
                {{"spec", {{"holderIdentity", "other"}, {"leaseDurationSeconds", 60}}}});
  clock.skip(2s);
  EXPECT_FALSE(one->may_act("default"));
  ASSERT_TRUE(base::eventually([&] { return over == 1; }));
  EXPECT_FALSE(one->may_act("default"));
  EXPECT_EQ(one->end()->message, "other holds the lease rel-0-of-1 now; beginning anew");
}

TEST_F(ShardLeasesTest, WaitForControllersOfAnotherCount) {
  auto old = leases("old", 1, clock_);
  old->start({});
  ASSERT_TRUE(base::eventually([&] { return held_by(*old) == 1; }));
  const auto fresh = leases("new", 2, clock_);
  fresh->start({});
  const base::Moment end = clock_.now() + 300ms;
  while (clock_.now() < end) ASSERT_EQ(held_by(*fresh), 0u);
  old.reset();
  EXPECT_TRUE(base::eventually([&] { return held_by(*fresh) == 2; }));
}

}  // namespace
}  // namespace controller
