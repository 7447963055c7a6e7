#include "libs/kube/election.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

#include "libs/base/log.h"
#include "libs/base/testing/eventually.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/kube/elector.h"
#include "libs/kube/micro_time.h"
#include "libs/kube/shards.h"
#include "libs/kube/testing/fake_server.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::Moment;

const ElectionSettings kSettings{.identity = "me"};
const Moment kNow{100s};
const base::WallTime kWall{1'000s};

LeaseRecord held_by(const std::string& holder) {
  return {.holder = holder,
          .acquired = base::WallTime(1s),
          .renewed = base::WallTime(2s),
          .transitions = 3,
          .resource_version = "7"};
}
LeaseRecord wanted(LeaseRecord record, std::int64_t transitions) {
  record.holder = "me";
  record.renewed = kWall;
  record.transitions = transitions;
  return record;
}
LeaseRecord claimed(LeaseRecord record, std::int64_t transitions) {
  record = wanted(std::move(record), transitions);
  record.acquired = kWall;
  return record;
}
Standing seen(std::optional<LeaseRecord> lease, base::Milliseconds ago) {
  return {.seen = std::move(lease), .seen_at = kNow - ago, .known = true};
}
LeaseRecord brief(LeaseRecord record) {
  record.duration = 3s;
  return record;
}

TEST(Election, DecidesByWhatItHasSeenAndForHowLong) {
  const struct {
    const char* name;
    Standing standing;
    ElectionMove move;
  } kCases[] = {
      {"nothing is known", {}, Look{}},
      {"something happened since", {.seen = held_by("me"), .known = false}, Look{}},
      {"there is no lease", seen(std::nullopt, 0s), Put{claimed({}, 0)}},
      {"it was given back", seen(held_by(""), 0s), Put{claimed(held_by(""), 4)}},
      {"another holds it", seen(held_by("you"), 0s), Rest{2s}},
      {"another holds it for a moment more", seen(held_by("you"), 14'500ms), Rest{500ms}},
      {"another let it lapse", seen(held_by("you"), 15s), Put{claimed(held_by("you"), 4)}},
      {"another wants us to wait less", seen(brief(held_by("you")), 3s),
       Put{claimed(held_by("you"), 4)}},
      {"we hold it", seen(held_by("me"), 2s), Put{wanted(held_by("me"), 3)}},
      {"we let it lapse, and nobody took it", seen(held_by("me"), 1h),
       Put{wanted(held_by("me"), 3)}},
  };
  for (const auto& each : kCases)
    EXPECT_EQ(decide(each.standing, kSettings, kNow, kWall), each.move) << each.name;
}

TEST(Election, CountsFromBeforeItsRequestLeft) {
  const Standing standing = after_put({}, kSettings, held_by("me"), kNow - 4s, kNow);
  EXPECT_EQ(standing.acts_until, kNow + 6s);
}

TEST(Election, CountsAnothersTimeFromWhenItFirstLookedSo) {
  Standing standing = after_look({}, held_by("you"), kNow);
  standing = after_look(standing, held_by("you"), kNow + 5s);
  EXPECT_EQ(standing.seen_at, kNow);
  LeaseRecord renewed = held_by("you");
  renewed.resource_version = "8";
  EXPECT_EQ(after_look(standing, renewed, kNow + 9s).seen_at, kNow + 9s);
}

// A lease whose next writes fail as often as told.
class FlakyLease final : public LeaseStore {
 public:
  int failures = 0;
  Answer<std::optional<LeaseRecord>> get(std::stop_token) override { return record_; }
  Answer<LeaseRecord> put(const LeaseRecord& record, std::stop_token) override {
    if (failures-- > 0) return Refusal{{base::ErrorCode::kUnavailable, "lost"}};
    record_ = record;
    record_->resource_version = "7";
    return *record_;
  }

 private:
  std::optional<LeaseRecord> record_;
};

TEST(Elector, CountsTheRenewalsThatItHadToLookBefore) {
  FlakyLease lease;
  base::FakeClock clock;
  Elector elector(lease, clock, kSettings);
  elector.turn({});
  elector.turn({});
  ASSERT_TRUE(elector.may_act());
  EXPECT_EQ(elector.slow_paths(), 0) << "a first look and a renewal are as they should be";
  lease.failures = 2;
  for (int turn = 0; turn < 4; ++turn) elector.turn({});
  EXPECT_EQ(elector.slow_paths(), 2);
  EXPECT_TRUE(elector.may_act());
}

TEST(Elector, GivesALeaseBackAlsoWhenItsLastRenewalFailed) {
  FlakyLease lease;
  base::FakeClock clock;
  Elector elector(lease, clock, kSettings);
  elector.turn({});
  lease.failures = 2;
  elector.turn({});
  elector.release({});
  EXPECT_EQ((*lease.get({}))->holder, "");
  elector.turn({});
  lease.failures = kReleaseTriesMax;
  elector.release({});
  EXPECT_EQ((*lease.get({}))->holder, "me") << "it lapses by itself";
}

// --- Contenders in simulated time.

// The lease as a server keeps it. Time may pass, and the other may move, while a request is on its
// way and while its answer is.
class SharedLease {
 public:
  Answer<std::optional<LeaseRecord>> get() { return record_; }
  Answer<LeaseRecord> put(const LeaseRecord& record) {
    const std::string current = record_ ? record_->resource_version : "";
    if (record.resource_version != current) {
      Refusal refusal{{base::ErrorCode::kConflict, "changed"}};
      refusal.reason = Reason::kConflict;
      return refusal;
    }
    record_ = record;
    record_->resource_version = std::to_string(++version_);
    return *record_;
  }

 private:
  std::optional<LeaseRecord> record_;
  int version_ = 0;
};

class Contender;
using OnTheWay = std::function<bool(Contender&)>;  // False: it is lost here.

class Contender final : public LeaseStore {
 public:
  static Answer<bool> nobody_else(std::stop_token) { return true; }

  Contender(const std::string& identity, SharedLease& lease, base::FakeClock& clock,
            OnTheWay on_the_way, std::function<double()> chance, Elector::Clear clear = nobody_else)
      : lease_(lease),
        on_the_way_(std::move(on_the_way)),
        elector_(*this, clock, {.identity = identity}, std::move(clear), std::move(chance)) {}

  Answer<std::optional<LeaseRecord>> get(std::stop_token) override {
    if (!on_the_way_(*this)) return lost();
    auto answer = lease_.get();
    return on_the_way_(*this) ? answer : lost();
  }
  Answer<LeaseRecord> put(const LeaseRecord& record, std::stop_token) override {
    if (!on_the_way_(*this)) return lost();
    auto answer = lease_.put(record);
    return on_the_way_(*this) ? answer : lost();
  }

  Elector& elector() { return elector_; }
  bool busy = false;
  Moment next{};

 private:
  static Refusal lost() {
    Refusal refusal{{base::ErrorCode::kUnavailable, "lost"}};
    refusal.reason = Reason::kNoAnswer;
    return refusal;
  }

  SharedLease& lease_;
  const OnTheWay on_the_way_;
  Elector elector_;
};

// Time, a bad network, and contenders who take turns; seeded by the parameter.
class World : public testing::TestWithParam<int> {
 protected:
  // What is lost here is lost on purpose.
  World() { base::log::configure(base::log::Level::kError, base::log::Format::kText); }
  void add(const std::string& identity, SharedLease& lease, Elector::Clear clear) {
    contenders_.emplace_back(
        identity, lease, clock_, [this](Contender&) { return on_the_way(); },
        [this] { return std::uniform_real_distribution<double>(0, 1)(dice_); }, std::move(clear));
  }
  bool one_in(unsigned count) { return dice_() % count == 0; }
  int actors() {
    int count = 0;
    for (Contender& each : contenders_) count += each.elector().may_act() ? 1 : 0;
    return count;
  }
  Contender& leader() {
    return *std::ranges::find_if(contenders_,
                                 [](Contender& each) { return each.elector().may_act(); });
  }
  // Moves time on, a little at a time, and lets whoever is due have its turn.
  void pass(base::Milliseconds time) {
    for (const Moment end = clock_.now() + time; clock_.now() < end;) {
      clock_.advance(std::min<base::Milliseconds>(100ms, end - clock_.now()));
      for (Contender& each : contenders_) {
        if (each.busy || clock_.now() < each.next) continue;
        each.busy = true;
        const auto rest = each.elector().turn({});
        each.next = clock_.now() + rest;
        each.busy = false;
      }
      ASSERT_LE(actors(), 1);
      if (actors() == 1) led_ += 100ms;
    }
  }
  // A request or an answer under way: sometimes at once, sometimes with the process stopped for
  // longer than any lease, sometimes lost.
  bool on_the_way() {
    if (calm_) return true;
    if (one_in(8)) pass(base::Milliseconds(dice_() % 3'000));
    if (one_in(40)) pass(base::Milliseconds(dice_() % 60'000));
    return !one_in(6);
  }
  void weather(int minutes) {
    for (int minute = 0; minute < minutes && !HasFatalFailure(); ++minute) {
      pass(60s);
      clock_.jump_wall(base::Seconds(static_cast<int>(dice_() % 7'200) - 3'600));
      // One is stopped between two turns, as by SIGSTOP.
      Contender& stopped = *std::next(contenders_.begin(), dice_() % contenders_.size());
      if (!stopped.busy) stopped.next = clock_.now() + base::Seconds(dice_() % 60);
    }
  }

  std::mt19937 dice_{static_cast<unsigned>(GetParam())};
  base::FakeClock clock_;
  bool calm_ = false;
  base::Milliseconds led_{0};
  std::list<Contender> contenders_;
};

class ElectionWorld : public World {
 protected:
  ElectionWorld() {
    for (const char* name : {"a", "b", "c"}) add(name, lease_, Contender::nobody_else);
  }
  SharedLease lease_;
};

TEST_P(ElectionWorld, NeverHasTwoWhoMayAct) {
  weather(20);
  EXPECT_GT(led_, 0s);
  // Once all is well, somebody leads for good.
  calm_ = true;
  pass(60s);
  led_ = 0s;
  pass(60s);
  EXPECT_EQ(led_, 60s);
}

TEST_P(ElectionWorld, HasANewHolderSoonAfterARelease) {
  calm_ = true;
  pass(30s);
  ASSERT_EQ(actors(), 1);
  Contender& first = leader();
  first.elector().release({});
  first.next = Moment::max();
  EXPECT_EQ(actors(), 0);
  pass(3'100ms);  // A retry and its jitter.
  EXPECT_EQ(actors(), 1);
  EXPECT_FALSE(first.elector().may_act());
}

TEST_P(ElectionWorld, TakesOverFromOneWhoVanished) {
  calm_ = true;
  pass(30s);
  ASSERT_EQ(actors(), 1);
  leader().next = Moment::max();
  pass(10s);
  EXPECT_EQ(actors(), 0);  // It knows by itself, without a turn.
  pass(10s);
  EXPECT_EQ(actors(), 1);
}

INSTANTIATE_TEST_SUITE_P(, ElectionWorld, testing::Range(0, 12));

// --- Controllers that do not agree on the number of shards.

class ShardWorld : public World {
 protected:
  ShardWorld() {
    for (const int count : {2, 3, 4}) {
      const std::string name = lease_name("fleet", {0, count});
      counts_.emplace_back(server_.client(), "here", "fleet", count, clock_);
      add(name, leases_[name],
          [&other = counts_.back()](std::stop_token stop) { return other.are_gone(stop); });
    }
  }
  net::Answer list() {
    if (!on_the_way()) return net::lost_answer();
    base::Json items = base::Json::array();
    for (auto& [name, lease] : leases_) {
      const auto record = *lease.get();
      if (!record) continue;
      base::Json spec = {{"leaseDurationSeconds", record->duration.count()}};
      if (!record->holder.empty()) spec["holderIdentity"] = record->holder;
      items.push_back(
          {{"metadata", {{"name", name}, {"resourceVersion", record->resource_version}}},
           {"spec", std::move(spec)}});
    }
    const net::Answer answer = net::answer(
        200, base::to_text(base::Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", items}}));
    return on_the_way() ? answer : net::lost_answer();
  }

  FakeServer server_{[this](const net::Request&) { return list(); }};
  std::map<std::string, SharedLease> leases_;
  std::list<OtherCounts> counts_;
};

TEST_P(ShardWorld, NeverActByTwoCounts) {
  weather(10);
  calm_ = true;
  led_ = 0s;
  pass(120s);
  EXPECT_GT(led_, 60s);
}

INSTANTIATE_TEST_SUITE_P(, ShardWorld, testing::Range(0, 8));

TEST(Shards, AreNamedAndFoundByName) {
  EXPECT_EQ(lease_name("fleet", {1, 3}), "fleet-1-of-3");
  EXPECT_EQ(shard_of_lease("fleet", "fleet-1-of-3"), (Shard{1, 3}));
  for (const char* other : {"fleet", "fleet-1", "fleet-3-of-3", "fleet--1-of-3", "fleet-x-of-3",
                            "fleet-1-of-", "other-1-of-3", "fleet2-1-of-3", "fleet-0-of-0"})
    EXPECT_EQ(shard_of_lease("fleet", other), std::nullopt) << other;
}

TEST(Shards, ShareProvidersTheSameEverywhere) {
  EXPECT_EQ(shard_of("default", 1), 0);
  EXPECT_EQ(shard_of("default", 1'000), 149);
  std::map<int, int> providers;
  for (int number = 0; number < 3'000; ++number) ++providers[shard_of(std::to_string(number), 3)];
  for (const int shard : {0, 1, 2}) EXPECT_NEAR(providers[shard], 1'000, 100);
}

// --- As an object of the API server, and from a thread of its own.

TEST(LeaseObject, IsWrittenAsKubernetesReadsIt) {
  base::Json kept;
  FakeServer server([&](const net::Request& request) {
    if (request.method == "GET" && kept.is_null())
      return net::answer(404, R"({"kind":"Status","reason":"NotFound"})");
    if (request.method != "GET") {
      kept = *base::parse_json(request.body);
      kept["metadata"]["resourceVersion"] = "8";
    }
    return net::answer(200, base::to_text(kept));
  });
  LeaseObject object(server.client(), {"sandfleet-system", "controller"});
  const auto none = object.get({});
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, std::nullopt);

  const LeaseRecord record{"me", 15s, base::WallTime(1s), base::WallTime(1'500ms), 2, "7"};
  const auto written = object.put(record, {});
  ASSERT_TRUE(written);
  EXPECT_EQ(kept["spec"], (base::Json{{"holderIdentity", "me"},
                                      {"leaseDurationSeconds", 15},
                                      {"leaseTransitions", 2},
                                      {"acquireTime", "1970-01-01T00:00:01.000000Z"},
                                      {"renewTime", "1970-01-01T00:00:01.500000Z"}}));
  LeaseRecord expected = record;
  expected.resource_version = "8";
  EXPECT_EQ(*written, expected);
  EXPECT_EQ(*object.get({}), std::optional(expected));
  EXPECT_EQ(server.transport().requests()[1].method, "PUT");
  EXPECT_TRUE(object.put({.holder = "me"}, {}));
  EXPECT_EQ(server.transport().requests().back().method, "POST");
  EXPECT_TRUE(object.put(released(record, base::WallTime(2s)), {}));
  EXPECT_FALSE(kept["spec"].contains("holderIdentity"));
}

TEST(MicroTime, HasSixDigits) {
  EXPECT_EQ(to_micro_time(base::WallTime(1'005ms)), "1970-01-01T00:00:01.005000Z");
  EXPECT_EQ(to_micro_time(base::WallTime(-1ms)), "1969-12-31T23:59:59.999000Z");
}

TEST(Elector, CountsHowOftenItCameToHoldItsLease) {
  base::FakeClock clock;
  SharedLease lease;
  const auto at_once = [](Contender&) { return true; };
  const auto even = [] { return 0.0; };
  Contender one("one", lease, clock, at_once, even), other("other", lease, clock, at_once, even);
  EXPECT_EQ(one.elector().tenures(), 0);
  one.elector().turn({});
  const Moment began = clock.now();
  EXPECT_EQ(one.elector().since(), began);
  clock.advance(2s);
  one.elector().turn({});
  EXPECT_EQ(one.elector().spells(), 1);
  // It lapsed, but nobody took it: what was known of it still holds.
  clock.advance(1h);
  EXPECT_FALSE(one.elector().may_act());
  one.elector().turn({});
  EXPECT_TRUE(one.elector().may_act());
  EXPECT_EQ(one.elector().tenures(), 1);
  EXPECT_EQ(one.elector().spells(), 2);
  EXPECT_EQ(one.elector().since(), began);

  other.elector().turn({});
  clock.advance(15s);
  other.elector().turn({});
  EXPECT_TRUE(other.elector().may_act());
  other.elector().release({});
  one.elector().turn({});
  one.elector().turn({});
  EXPECT_TRUE(one.elector().may_act());
  EXPECT_EQ(one.elector().tenures(), 2);
  EXPECT_EQ(one.elector().since(), clock.now());
}

TEST(Elector, HoldsItsLeaseUntilItGoes) {
  base::FakeClock clock;
  SharedLease lease;
  const auto at_once = [](Contender&) { return true; };
  const auto even = [] { return 0.0; };
  Contender other("other", lease, clock, at_once, even);
  std::vector<bool> told;
  std::atomic<bool> leads = false;
  {
    Contender one("one", lease, clock, at_once, even);
    one.elector().start([&] {
      leads = one.elector().may_act();
      if (told.empty() || told.back() != leads) told.push_back(leads);
    });
    EXPECT_TRUE(base::eventually([&] { return leads.load(); }));
  }
  EXPECT_EQ(told, (std::vector{true, false}));
  EXPECT_EQ(lease.get()->value().holder, "");
  other.elector().turn({});
  EXPECT_TRUE(other.elector().may_act());
}

}  // namespace
}  // namespace kube
