// Leases, idempotency keys and API keys: small ledgers that only a clock moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/testing/fake_clock.h"
#include "local_e2b/control/idempotency.h"
#include "local_e2b/control/leases.h"
#include "local_e2b/control/teams.h"

namespace local_e2b {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Leases, FallDueInOrder) {
  base::FakeClock clock;
  Leases leases;
  leases.set("late", clock.now() + seconds(20));
  leases.set("early", clock.now() + seconds(10));
  leases.set("longer", clock.now() + seconds(5));
  leases.set("longer", clock.now() + seconds(30));
  leases.set("gone", clock.now() + seconds(1));
  leases.remove("gone");
  EXPECT_EQ(leases.next(), clock.now() + seconds(10));
  EXPECT_THAT(leases.take_due(clock.now()), ElementsAre());
  clock.advance(seconds(20));
  EXPECT_THAT(leases.take_due(clock.now()), ElementsAre("early", "late"));
  EXPECT_THAT(leases.take_due(clock.now()), ElementsAre());
  EXPECT_EQ(leases.end_of("longer"), clock.now() + seconds(10));
}

aio::HttpReply reply(const std::string& body) { return {.status = 201, .body = body}; }

TEST(Idempotency, ReplaysWhatWasAnswered) {
  base::FakeClock clock;
  Idempotency ledger(clock);
  EXPECT_TRUE(std::holds_alternative<Idempotency::Execute>(ledger.begin("red", "k", "f")));
  EXPECT_TRUE(std::holds_alternative<Idempotency::InProgress>(ledger.begin("red", "k", "f")));
  EXPECT_TRUE(std::holds_alternative<Idempotency::Mismatch>(ledger.begin("red", "k", "g")));
  EXPECT_TRUE(std::holds_alternative<Idempotency::Execute>(ledger.begin("blue", "k", "g")));
  ledger.finish("red", "k", "f", reply("first"));
  const auto again = ledger.begin("red", "k", "f");
  ASSERT_TRUE(std::holds_alternative<aio::HttpReply>(again));
  EXPECT_EQ(std::get<aio::HttpReply>(again).body, "first");
  EXPECT_TRUE(std::holds_alternative<Idempotency::Mismatch>(ledger.begin("red", "k", "g")));
}

TEST(Idempotency, ForgetsAfterItsTimeWhichRepeatsDoNotProlong) {
  base::FakeClock clock;
  Idempotency ledger(clock);
  ledger.begin("red", "k", "f");
  ledger.finish("red", "k", "f", reply("first"));
  clock.advance(kIdempotencyKept - seconds(1));
  EXPECT_TRUE(std::holds_alternative<aio::HttpReply>(ledger.begin("red", "k", "f")));
  clock.advance(seconds(2));
  EXPECT_TRUE(std::holds_alternative<Idempotency::Execute>(ledger.begin("red", "k", "f")));
}

TEST(Idempotency, KeepsSoManyAndNoMore) {
  base::FakeClock clock;
  Idempotency ledger(clock);
  for (std::size_t i = 0; i < kIdempotencyRecordsMax; ++i)
    ledger.begin("red", std::to_string(i), "f");
  EXPECT_TRUE(std::holds_alternative<Idempotency::Full>(ledger.begin("red", "more", "f")));
  ledger.finish("red", "0", "f", reply("done"));
  EXPECT_TRUE(std::holds_alternative<aio::HttpReply>(ledger.begin("red", "0", "f")));
  EXPECT_TRUE(std::holds_alternative<Idempotency::Execute>(ledger.begin("red", "more", "f")));
  EXPECT_EQ(ledger.size(), kIdempotencyRecordsMax);
}

TEST(Idempotency, KnowsAKeyWhenItSeesOne) {
  EXPECT_TRUE(valid_idempotency_key("0123456789abcdef"));
  EXPECT_TRUE(valid_idempotency_key(std::string(255, 'a')));
  for (const std::string bad : {"", "A", "a-b", "a b"}) EXPECT_FALSE(valid_idempotency_key(bad));
  EXPECT_FALSE(valid_idempotency_key(std::string(256, 'a')));
}

TEST(Teams, AreReadFromLines) {
  const auto teams = Teams::parse("# keys\ne2b_1\nblue e2b_2  # second\n\n");
  ASSERT_TRUE(teams);
  EXPECT_EQ(teams->team_of("e2b_1"), "default");
  EXPECT_EQ(teams->team_of("e2b_2"), "blue");
  EXPECT_EQ(teams->team_of("e2b_3"), std::nullopt);
  EXPECT_EQ(teams->team_of(""), std::nullopt);
  EXPECT_THAT(Teams::parse("a b c").error().message, HasSubstr("line 1: write KEY or TEAM KEY"));
  EXPECT_THAT(Teams::parse("# none").error().message, HasSubstr("no API key"));
}

}  // namespace
}  // namespace local_e2b
