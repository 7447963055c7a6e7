#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agentd/carry/outbox.h"
#include "agentd/carry/token_end.h"
#include "agentd/carry/unanswered.h"
#include "libs/aio/testing/run.h"
#include "libs/base/crypto.h"
#include "libs/wire/frames/message.h"

namespace agentd {
namespace {

using testing::HasSubstr;

std::string jwt(const std::string& claims) { return "e30." + base::to_base64url(claims) + ".c2ln"; }

TEST(UnansweredRequests, AreThoseOfLately) {
  const base::Moment now(base::Seconds(1'000));
  Unanswered unanswered;
  EXPECT_FALSE(unanswered.any(now));
  unanswered.sent(1, now);
  unanswered.sent(2, now + base::Seconds(1));
  unanswered.answered(1);
  unanswered.answered(7);
  EXPECT_TRUE(unanswered.any(now + Unanswered::kLately));
  EXPECT_FALSE(unanswered.any(now + base::Seconds(1) + Unanswered::kLately)) << "it was read since";
  unanswered.sent(3, now);
  unanswered.clear();
  EXPECT_FALSE(unanswered.any(now));
}

TEST(UnansweredRequests, AreNotBytesThatAnExecutorWouldHaveReadBeforeItIdled) {
  const base::Moment now(base::Seconds(1'000));
  Unanswered unanswered;
  unanswered.moved_bytes(now - base::Seconds(5));
  unanswered.moved_bytes(now);
  EXPECT_TRUE(unanswered.any(now + base::Milliseconds(999)));
  EXPECT_FALSE(unanswered.any(now + base::Milliseconds(1'000)));
  unanswered.clear();
  EXPECT_FALSE(unanswered.any(now));
}

TEST(UnansweredRequests, AreRememberedAsFarAsThereIsRoom) {
  const base::Moment now(base::Seconds(1'000));
  Unanswered unanswered;
  for (std::uint32_t id = 1; id <= Unanswered::kMax + 1; ++id) unanswered.sent(id, now);
  for (std::uint32_t id = 1; id <= Unanswered::kMax; ++id) unanswered.answered(id);
  EXPECT_FALSE(unanswered.any(now)) << "the last one had no room";
  for (std::uint32_t id = 1; id <= Unanswered::kMax; ++id) unanswered.sent(id, now);
  unanswered.sent(9'999, now + Unanswered::kLately);
  EXPECT_TRUE(unanswered.any(now + Unanswered::kLately)) << "those of long ago make room";
}

TEST(UnansweredRequests, AreKnownByTheStreamOfTheirFrame) {
  const std::string frame = wire::encode(
      wire::to_frame(wire::Request{.id = 0x01020304, .op = "echo", .args = base::Json::object()}));
  const auto seen = wire::look_at(frame);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->stream, 0x01020304u);
  EXPECT_FALSE(wire::look_at("short"));
}

TEST(EndsOfTokens, AreWhatTheySay) {
  EXPECT_EQ(end_of_token(jwt(R"({"exp": 1800000000})")),
            base::WallTime(base::Seconds(1'800'000'000)));
  EXPECT_FALSE(end_of_token(jwt(R"({"exp": "soon"})")));
  EXPECT_FALSE(end_of_token(jwt(R"({"exp": -1})")));
  EXPECT_FALSE(end_of_token(jwt(R"({"exp": 9223372036854775807})")));
  EXPECT_FALSE(end_of_token(jwt("{}")));
  EXPECT_FALSE(end_of_token(jwt("not JSON")));
  EXPECT_FALSE(end_of_token("not.base64!."));
  EXPECT_FALSE(end_of_token("opaque"));
  EXPECT_FALSE(end_of_token("of.two"));
  EXPECT_FALSE(end_of_token(""));
}

struct Site {
  aio::Loop loop;
  Outbox outbox{loop.executor()};
  std::size_t put = 0;
};

aio::Task<> put_much(Site& site) {
  while (co_await site.outbox.put(std::string(64u << 10, 'x'))) ++site.put;
}
// Until it holds so many bytes, and for some turns of the loop more, in which it may come to hold
// too many.
aio::Task<> until_full(Site& site) {
  constexpr base::Milliseconds kATurn{0};
  while (site.outbox.held() < Outbox::kBytesMax) co_await aio::sleep_for(kATurn);
  for (int i = 0; i < 10; ++i) co_await aio::sleep_for(kATurn);
}
aio::Task<> put_until_it_waits(Site& site) {
  co_await aio::race(put_much(site), until_full(site));
  EXPECT_GE(site.outbox.held(), Outbox::kBytesMax);
  EXPECT_LT(site.outbox.held(), Outbox::kBytesMax + (65u << 10));
  const std::size_t before = site.put;
  EXPECT_TRUE(co_await site.outbox.take());
  co_await aio::race(put_much(site), until_full(site));
  EXPECT_EQ(site.put, before + 1) << "one was taken, one more has room";
}
// covers: O5
TEST(Outboxes, LetWhoPutsMoreInWait) { aio::testing::tell(put_until_it_waits); }

aio::Task<> take_in_order(Site& site) {
  co_await site.outbox.put("first");
  co_await site.outbox.put("second");
  site.outbox.ping();
  site.outbox.pong();
  site.outbox.ping();
  site.outbox.finish(wire::Close{wire::CloseReason::kShutdown});
  EXPECT_FALSE(co_await site.outbox.put("later"));
  site.outbox.finish(wire::Close{wire::CloseReason::kDenied});
  std::vector<std::string> taken;
  while (auto frame = co_await site.outbox.take()) taken.push_back(*std::move(frame));
  EXPECT_EQ(taken.size(), 5u);
  if (taken.size() != 5) co_return;
  EXPECT_EQ((*wire::decode(taken[0]))->type, wire::FrameType::kPong);
  EXPECT_EQ((*wire::decode(taken[1]))->type, wire::FrameType::kPing);
  EXPECT_EQ(taken[2], "first");
  EXPECT_EQ(taken[3], "second");
  EXPECT_THAT(taken[4], HasSubstr("shutdown"));
}
TEST(Outboxes, SayTheLastWordLast) { aio::testing::tell(take_in_order); }

aio::Task<> close_while_one_waits(Site& site) {
  co_await aio::race(put_much(site), until_full(site));
  aio::TaskGroup tasks(site.loop.executor());
  tasks.spawn(put_much(site));
  site.outbox.close();
  co_await tasks.wait();
  EXPECT_FALSE(co_await site.outbox.take());
  EXPECT_EQ(site.outbox.held(), 0u);
}
TEST(Outboxes, LetGoOfWhoWaitsWhenTheyAreClosed) { aio::testing::tell(close_while_one_waits); }

}  // namespace
}  // namespace agentd
