#include <gtest/gtest.h>

#include "libs/wire/session/incoming.h"
#include "libs/wire/session/outgoing.h"
#include "libs/wire/session/stream_set.h"

namespace wire {
namespace {

Data data(std::int64_t offset, std::string bytes, bool end = false) {
  return {.stream = 1, .offset = offset, .payload = std::move(bytes), .end = end};
}

TEST(Outgoing, SendsWhatItsCreditAllowsAndKeepsItUntilItArrived) {
  Outgoing out(4);
  out.append("abcdefgh");
  ASSERT_TRUE(out.ready());
  EXPECT_EQ(out.next(3), (Data{.offset = 0, .payload = "abc"}));
  EXPECT_EQ(out.next(100), (Data{.offset = 3, .payload = "d"}));
  EXPECT_FALSE(out.ready()) << "its credit is used up";
  EXPECT_EQ(out.held(), 8u);
  ASSERT_TRUE(out.credit(3, 7, false));
  EXPECT_EQ(out.held(), 5u);
  EXPECT_EQ(out.next(100), (Data{.offset = 4, .payload = "efg"}));
  ASSERT_TRUE(out.credit(7, 5, false)) << "a limit that shrinks says nothing new";
  EXPECT_FALSE(out.ready());
  ASSERT_TRUE(out.credit(7, 8, false));
  EXPECT_EQ(out.next(100), (Data{.offset = 7, .payload = "h"}));
}

TEST(Outgoing, IsDoneWhenItsEndArrivedAndNotBefore) {
  Outgoing out(10);
  out.append("ab");
  out.end(failure(FailureCode::kFsNotText, "bad"));
  EXPECT_EQ(out.next(1), (Data{.offset = 0, .payload = "a"}));
  const Data last = out.next(1);
  EXPECT_TRUE(last.end);
  EXPECT_EQ(last.error->code, FailureCode::kFsNotText);
  ASSERT_TRUE(out.credit(2, 20, false));
  EXPECT_FALSE(out.done());
  ASSERT_TRUE(out.credit(2, 20, true));
  EXPECT_TRUE(out.done());
  EXPECT_EQ(out.room(100), 0u);
}

TEST(Outgoing, SaysAnEndWithoutCredit) {
  Outgoing out(0);
  out.end();
  ASSERT_TRUE(out.ready());
  EXPECT_EQ(out.next(10), (Data{.offset = 0, .end = true}));
  EXPECT_FALSE(out.ready());
}

TEST(Outgoing, GoesOnAfterACutWhereThePeerIs) {
  Outgoing out(10);
  out.append("abcdef");
  out.end();
  out.next(4);
  out.next(4);
  out.cut();
  EXPECT_FALSE(out.ready()) << "until the peer has said where it is";
  ASSERT_TRUE(out.go_on(3, 10, false));
  EXPECT_EQ(out.next(10), (Data{.offset = 3, .payload = "def", .end = true}));
  out.cut();
  ASSERT_TRUE(out.go_on(6, 10, false));
  EXPECT_EQ(out.next(10), (Data{.offset = 6, .end = true})) << "its end again";
}

TEST(Outgoing, BeginsAgainForAPeerThatNeverSawIt) {
  Outgoing out(10);
  out.append("abc");
  out.end();
  out.next(10);
  out.cut();
  out.restart(2);
  EXPECT_EQ(out.next(10), (Data{.offset = 0, .payload = "ab"}));
  EXPECT_FALSE(out.ready());
}

TEST(Outgoing, RefusesWhatCannotBe) {
  Outgoing out(10);
  out.append("abcdef");
  out.next(4);
  EXPECT_FALSE(out.credit(5, 10, false)) << "more than was sent";
  EXPECT_FALSE(out.credit(4, 10, true)) << "an end that was not said";
  ASSERT_TRUE(out.credit(3, 10, false));
  out.cut();
  EXPECT_FALSE(out.go_on(2, 10, false)) << "less than before";
}

TEST(Outgoing, MarksWhatItLetGo) {
  Outgoing out(4);
  out.append("abcdef");
  out.next(10);
  out.skip(94);  // Bytes 6 to 99 were never held.
  EXPECT_EQ(out.held(), 0u);
  out.append("xyz");
  out.end();
  EXPECT_EQ(out.next(10), (Data{.offset = 100, .dropped = true})) << "needs no credit";
  EXPECT_FALSE(out.ready());
  ASSERT_TRUE(out.credit(100, 104, false));
  out.cut();
  ASSERT_TRUE(out.go_on(100, 104, false));
  EXPECT_EQ(out.next(10), (Data{.offset = 100, .payload = "xyz", .end = true}));
}

TEST(Outgoing, HoldsNoMemoryForWhatArrived) {
  Outgoing out(1 << 30);
  for (int i = 0; i < 1000; ++i) {
    out.append(std::string(10'000, 'x'));
    while (out.ready()) out.next(4096);
    ASSERT_TRUE(out.credit(out.offset() - 10, 1 << 30, false));
    EXPECT_EQ(out.held(), 10u);
  }
  EXPECT_EQ(out.acknowledged(), 9'999'990);
}

TEST(Incoming, TakesEachByteOnce) {
  Incoming in(100);
  ASSERT_TRUE(in.receive(data(0, "abc")));
  ASSERT_TRUE(in.receive(data(0, "abc")));
  ASSERT_TRUE(in.receive(data(1, "bcde", true)));
  ASSERT_TRUE(in.receive(data(1, "bcde", true)));
  EXPECT_EQ(in.take(2), (Piece{.offset = 0, .bytes = "ab"}));
  EXPECT_EQ(in.take(100), (Piece{.offset = 2, .bytes = "cde", .end = true}));
  EXPECT_FALSE(in.take(100));
}

TEST(Incoming, HandsOnAnEndWithoutBytes) {
  Incoming in(100);
  ASSERT_TRUE(in.receive(data(0, "a")));
  EXPECT_EQ(in.take(10), (Piece{.offset = 0, .bytes = "a"}));
  EXPECT_FALSE(in.take(10));
  Data end = data(1, "", true);
  end.error = failure(FailureCode::kLost, "gone");
  ASSERT_TRUE(in.receive(end));
  EXPECT_EQ(in.take(10), (Piece{.offset = 1, .end = true, .error = end.error}));
}

TEST(Incoming, RefusesWhatBreaksTheRules) {
  const struct {
    const char* name;
    Data data;
  } cases[] = {
      {"a_gap", data(6, "x")},
      {"beyond_its_credit", data(5, "123456")},
      {"an_end_before_what_came", data(0, "abc", true)},
  };
  for (const auto& test : cases) {
    Incoming in(10);
    ASSERT_TRUE(in.receive(data(0, "abcde")));
    EXPECT_FALSE(in.receive(test.data)) << test.name;
  }
  Incoming ended(10);
  ASSERT_TRUE(ended.receive(data(0, "a", true)));
  EXPECT_FALSE(ended.receive(data(1, "b"))) << "behind its end";
  EXPECT_FALSE(ended.receive({.offset = 5, .dropped = true})) << "behind its end";
}

TEST(Incoming, GivesCreditWhenHalfOfItIsUsed) {
  Incoming in(100);
  ASSERT_TRUE(in.receive(data(0, std::string(100, 'x'))));
  EXPECT_FALSE(in.credit(100)) << "nobody has read";
  in.take(49);
  EXPECT_FALSE(in.credit(100));
  in.take(1);
  EXPECT_EQ(in.credit(100), (Credit{.received = 100, .limit = 150}));
  EXPECT_FALSE(in.credit(100)) << "it was said";
  EXPECT_EQ(in.granted(), 100);
}

TEST(Incoming, SaysOnceThatTheEndArrived) {
  Incoming in(10);
  ASSERT_TRUE(in.receive(data(0, "a", true)));
  EXPECT_EQ(in.credit(10), (Credit{.received = 1, .limit = 10, .ended = true}));
  EXPECT_FALSE(in.credit(10));
  EXPECT_FALSE(in.done());
  in.take(10);
  EXPECT_TRUE(in.done());
}

TEST(Incoming, AnswersADropWithCreditAndTellsItsReader) {
  Incoming in(4);
  ASSERT_TRUE(in.receive(data(0, "abcd")));
  ASSERT_TRUE(in.receive({.offset = 50, .dropped = true}));
  EXPECT_EQ(in.credit(4), (Credit{.received = 50, .limit = 50})) << "its reader is behind";
  EXPECT_EQ(in.take(10), (Piece{.offset = 0, .bytes = "abcd"}));
  EXPECT_EQ(in.credit(4), (Credit{.received = 50, .limit = 54}));
  ASSERT_TRUE(in.receive(data(50, "xyz")));
  EXPECT_EQ(in.take(10), (Piece{.offset = 50, .bytes = "xyz"}));
  ASSERT_TRUE(in.receive({.offset = 20, .dropped = true})) << "an old one, again";
  EXPECT_FALSE(in.take(10));
}

TEST(Incoming, HoldsManySmallPiecesAsFew) {
  Incoming in(1 << 20);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(in.receive(data(i, "x")));
  EXPECT_EQ(in.take(1 << 20)->bytes.size(), 5000u);
}

TEST(Incoming, EndsWhenItIsBrokenOff) {
  Incoming in(10);
  ASSERT_TRUE(in.receive(data(0, "a")));
  in.break_off(failure(FailureCode::kLost, "gone"));
  const auto piece = in.take(10);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->bytes, "a");
  EXPECT_TRUE(piece->end);
  EXPECT_EQ(piece->error->code, FailureCode::kLost);
  EXPECT_FALSE(in.credit(10)) << "there is nobody to tell";
}

bool always(std::uint32_t) { return true; }

// What would be sent now, by stream.
std::vector<std::uint32_t> turns(StreamSet& streams) {
  std::vector<std::uint32_t> turns;
  while (auto message = streams.next(always))
    if (const auto* sent = std::get_if<Data>(&*message)) turns.push_back(sent->stream);
  return turns;
}

TEST(StreamSet, LetsEachStreamHaveItsTurnAndNoneWaitForAnother) {
  StreamSet streams;
  for (const std::uint32_t id : {1u, 2u, 3u}) {
    streams.open_outgoing(id, id == 2 ? 0 : 1 << 20);  // Nobody reads the second.
    streams.outgoing(id)->append(std::string(2 * kChunkBytes, 'x'));
  }
  EXPECT_EQ(turns(streams), (std::vector<std::uint32_t>{1, 3, 1, 3}));
  ASSERT_TRUE(*streams.receive(Credit{.stream = 2, .limit = 1 << 20}));
  EXPECT_EQ(turns(streams), (std::vector<std::uint32_t>{2, 2}));
}

// The sizes of what would be sent now.
std::vector<std::size_t> chunks(StreamSet& streams) {
  std::vector<std::size_t> sizes;
  while (auto message = streams.next(always))
    if (const auto* sent = std::get_if<Data>(&*message)) sizes.push_back(sent->payload.size());
  return sizes;
}

// A link that lasts for some kilobytes carries something whole, too.
TEST(StreamSet, BeginsSmallAfterACut) {
  constexpr std::size_t kAll = 2 * kChunkBytes;
  StreamSet streams;
  streams.cut();  // Nothing was lost with it.
  streams.open_outgoing(1, kAll);
  streams.outgoing(1)->append(std::string(kAll, 'x'));
  EXPECT_EQ(chunks(streams), (std::vector<std::size_t>{kChunkBytes, kChunkBytes}));
  streams.cut();
  ASSERT_TRUE(streams.outgoing(1)->go_on(0, kAll, false));
  EXPECT_EQ(chunks(streams),
            (std::vector<std::size_t>{2'048, 4'096, 8'192, 16'384, 32'768, kChunkBytes, 2'048}));
  streams.cut();
  streams.cut();
  ASSERT_TRUE(streams.outgoing(1)->go_on(0, kAll, false));
  EXPECT_EQ(chunks(streams).front(), 2'048u);
}

TEST(StreamSet, HoldsLittleOfEachWhenAllTogetherHoldMuch) {
  StreamSet streams;
  std::size_t held = 0;
  for (std::uint32_t id = 1; id <= kStreamsMax; ++id) {
    streams.open_outgoing(id, 0);
    const std::size_t room = streams.room(id);
    EXPECT_EQ(room, held < kStreamsBytesMax ? kStreamBytesMax : kStreamBytesAlways);
    streams.outgoing(id)->append(std::string(room, 'x'));
    held += room;
  }
  EXPECT_EQ(streams.held(), held);
  EXPECT_LE(held, kStreamsBytesMax + kStreamsMax * kStreamBytesAlways);
  EXPECT_EQ(streams.room(1), 0u);
}

TEST(StreamSet, GrantsLittleOfEachWhenAllTogetherWereGrantedMuch) {
  StreamSet streams;
  for (std::uint32_t id = 1; id <= kStreamsMax; ++id) {
    streams.open_incoming(id, 0);
    streams.credit_due(id);
  }
  std::size_t told = 0;
  while (auto message = streams.next(always))
    told += static_cast<std::size_t>(std::get<Credit>(*message).limit);
  EXPECT_EQ(told, streams.granted());
  EXPECT_GE(told, kStreamsMax * kStreamBytesAlways);
  EXPECT_LE(told, kStreamsBytesMax + kStreamsMax * kStreamBytesAlways);
}

TEST(StreamSet, ForgetsAStreamWhoseEndWasReadAndSaid) {
  StreamSet streams;
  streams.open_incoming(1, 100);
  ASSERT_TRUE(*streams.receive(data(0, "a", true)));
  EXPECT_TRUE(streams.take(1, 10)->end);
  EXPECT_EQ(streams.size(), 1u) << "the sender does not know yet";
  EXPECT_EQ(streams.next(always), Message(Credit{1, 1, 100 + 0, true}));
  EXPECT_EQ(streams.size(), 0u);
  EXPECT_FALSE(*streams.receive(data(0, "a", true))) << "an ended one's are skipped";
}

TEST(StreamSet, SaysThatAStreamIsWantedNoMore) {
  StreamSet streams;
  streams.open_incoming(1, 100);
  streams.stop(1);
  EXPECT_EQ(streams.next(always), Message(Stop{1}));
  EXPECT_FALSE(streams.next(always));
  streams.open_outgoing(2, 100);
  EXPECT_TRUE(streams.receive(Stop{2}));
  EXPECT_FALSE(streams.receive(Stop{2}));
  EXPECT_EQ(streams.size(), 0u);
}

}  // namespace
}  // namespace wire
