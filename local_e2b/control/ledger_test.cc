// Leases, idempotency keys and API keys: small ledgers that only a clock moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
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

aio::HttpReply reply(const std::string& body) {
  return {.status = 201, .fields = {{"Content-Type", "text/plain"}}, .body = body};
}

class Keys : public testing::Test {
 protected:
  template <typename Expected>
  static bool is(const Idempotency::Decision& decision) {
    return std::holds_alternative<Expected>(decision);
  }
  // As after `kill -9`: nothing remains but the records.
  void restart(base::Milliseconds away = seconds(1)) {
    clock_.advance(away);
    ledger_.emplace(records_, clock_);
    ledger_->take_over();
  }

  const base::TemporaryFolder folder_;
  base::FakeClock clock_;
  const KeyRecords records_ = *KeyRecords::open(folder_.path());
  std::optional<Idempotency> ledger_{std::in_place, records_, clock_};
};

TEST_F(Keys, ReplayWhatWasAnswered) {
  EXPECT_TRUE(is<Idempotency::Execute>(ledger_->begin("red", "k", "f")));
  EXPECT_TRUE(is<Idempotency::InProgress>(ledger_->begin("red", "k", "f")));
  EXPECT_TRUE(is<Idempotency::Mismatch>(ledger_->begin("red", "k", "g")));
  EXPECT_TRUE(is<Idempotency::Execute>(ledger_->begin("blue", "k", "g")));
  ledger_->finish("red", "k", "f", reply("first"));
  for (const bool again : {false, true}) {
    if (again) restart();
    const auto replay = ledger_->begin("red", "k", "f");
    ASSERT_TRUE(is<aio::HttpReply>(replay));
    EXPECT_EQ(std::get<aio::HttpReply>(replay).status, 201);
    EXPECT_EQ(std::get<aio::HttpReply>(replay).fields, reply("first").fields);
    EXPECT_EQ(std::get<aio::HttpReply>(replay).body, "first");
    EXPECT_TRUE(is<Idempotency::Mismatch>(ledger_->begin("red", "k", "g")));
  }
}

TEST_F(Keys, SayThatTheOutcomeIsUnknownWhenTheServerDiedBeforeTheAnswer) {
  ledger_->begin("red", "k", "f");
  for (int times = 0; times < 2; ++times) {
    restart();
    EXPECT_TRUE(is<Idempotency::Unknown>(ledger_->begin("red", "k", "f"))) << "never done again";
    EXPECT_TRUE(is<Idempotency::Mismatch>(ledger_->begin("red", "k", "g")));
  }
  ledger_->settle("red", "k", "f", reply("it is there"));
  restart();
  EXPECT_TRUE(is<aio::HttpReply>(ledger_->begin("red", "k", "f")));
  ledger_->settle("red", "k", "f", reply("another"));
  EXPECT_EQ(std::get<aio::HttpReply>(ledger_->begin("red", "k", "f")).body, "it is there");
}

TEST_F(Keys, AreForgottenAfterTheirTimeWhichRepeatsAndRestartsDoNotProlong) {
  ledger_->begin("red", "k", "f");
  ledger_->begin("red", "lost", "f");
  ledger_->finish("red", "k", "f", reply("first"));
  restart(kIdempotencyKept - seconds(1));
  EXPECT_TRUE(is<aio::HttpReply>(ledger_->begin("red", "k", "f")));
  EXPECT_TRUE(is<Idempotency::Unknown>(ledger_->begin("red", "lost", "f")));
  clock_.advance(seconds(2));
  EXPECT_TRUE(is<Idempotency::Execute>(ledger_->begin("red", "k", "f")));
  EXPECT_EQ(ledger_->size(), 1u);
  EXPECT_EQ(records_.load().size(), 1u);
}

TEST_F(Keys, AreKeptSoManyAndNoMore) {
  for (std::size_t i = 0; i < kIdempotencyRecordsMax; ++i)
    ledger_->begin("red", std::to_string(i), "f");
  EXPECT_TRUE(is<Idempotency::Full>(ledger_->begin("red", "more", "f")));
  ledger_->finish("red", "0", "f", reply("done"));
  EXPECT_TRUE(is<aio::HttpReply>(ledger_->begin("red", "0", "f")));
  EXPECT_TRUE(is<Idempotency::Execute>(ledger_->begin("red", "more", "f")));
  EXPECT_EQ(ledger_->size(), kIdempotencyRecordsMax);
}

TEST_F(Keys, BeginNothingThatCannotBeWrittenDown) {
  std::filesystem::remove_all(folder_.path() / "idempotency-keys");
  EXPECT_TRUE(is<Idempotency::Unwritten>(ledger_->begin("red", "k", "f")));
  std::filesystem::create_directory(folder_.path() / "idempotency-keys");
  EXPECT_TRUE(is<Idempotency::Execute>(ledger_->begin("red", "k", "f")));
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
