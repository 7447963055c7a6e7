#include "libs/wire/session/served_session.h"

#include <gtest/gtest.h>

namespace wire {
namespace {

// A session and the messages of whoever is at the other end of its link.
class Peer {
 public:
  Peer() { link(); }

  void link(Resume resume = {}) {
    served.link_up();
    theirs = std::get<Resume>(*served.next());
    say(std::move(resume));
  }
  void cut() { served.link_down(); }
  SessionEvents say(Message message) {
    auto events = served.receive(std::move(message));
    EXPECT_TRUE(events) << events.error().message;
    return events ? *std::move(events) : SessionEvents{};
  }
  std::string breaks(Message message) {
    const auto events = served.receive(std::move(message));
    return events ? "it was accepted" : events.error().message;
  }
  // All that is to be sent now.
  std::vector<Message> hear() {
    std::vector<Message> heard;
    while (auto message = served.next()) heard.push_back(*std::move(message));
    return heard;
  }
  // The one reply that is to be sent now.
  Reply reply() {
    for (Message& message : hear())
      if (auto* reply = std::get_if<Reply>(&message)) return *std::move(reply);
    ADD_FAILURE() << "no reply";
    return {};
  }
  FailureCode refusal() {
    const Reply refused = reply();
    return refused.error ? refused.error->code : FailureCode::kInternal;
  }

  ServedSession served;
  Resume theirs;  // What it said when it was linked.
};

Request look(std::uint32_t id) { return {.id = id, .op = "look"}; }
Request act(std::uint32_t id, std::int64_t seq) { return {.id = id, .op = "act", .seq = seq}; }
Request fetch(std::uint32_t id, std::int64_t limit = 1 << 20) {
  return {.id = id, .op = "fetch", .down = limit};
}

template <typename Event>
bool has(const SessionEvents& events) {
  for (const auto& event : events)
    if (std::holds_alternative<Event>(event)) return true;
  return false;
}

TEST(ServedSession, BeginsEveryLinkWithResume) {
  ServedSession served;
  EXPECT_FALSE(served.next()) << "without a link";
  served.link_up();
  EXPECT_EQ(served.next(), Message(Resume{}));
  EXPECT_FALSE(served.receive(look(1))) << "before the peer's own";
  EXPECT_FALSE(served.receive(Resume{.link = "another"})) << "meant for a link before";
  ASSERT_TRUE(served.receive(Resume{}));
  EXPECT_FALSE(served.receive(Resume{})) << "twice";
  EXPECT_FALSE(served.receive(Hello{})) << "only the handshake has it";
  EXPECT_FALSE(served.receive(Reply{.id = 1, .ok = base::Json::object()}));
}

TEST(ServedSession, AnswersARequestOnce) {
  Peer peer;
  const SessionEvents events = peer.say(look(1));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<Asked>(events[0]).request, look(1));
  peer.served.reply(1, {{"a", 1}});
  EXPECT_EQ(peer.hear(), std::vector<Message>{(Reply{.id = 1, .ok = base::Json{{"a", 1}}})});
  peer.served.reply(1, {{"a", 2}});
  EXPECT_TRUE(peer.hear().empty()) << "it was answered";
  EXPECT_EQ(peer.served.unanswered(), 0u);
}

// What a mutating request gets, by where its number stands.
TEST(ServedSession, ActsOnEachNumberOnce) {
  const struct {
    const char* name;
    std::int64_t seq;
    std::uint32_t id;
    FailureCode refused;
  } cases[] = {
      {"answered_and_acknowledged", 1, 91, FailureCode::kAlreadyAnswered},
      {"kept_under_another_id", 2, 92, FailureCode::kInvalid},
      {"at_work_under_another_id", 3, 93, FailureCode::kInvalid},
      {"beyond_the_next", 5, 95, FailureCode::kOutOfSequence},
  };
  for (const auto& test : cases) {
    Peer peer;
    for (std::uint32_t i = 1; i <= 3; ++i) EXPECT_TRUE(has<Asked>(peer.say(act(10 + i, i))));
    peer.served.reply(11, {{"n", 1}});
    peer.served.reply(12, {{"n", 2}});
    peer.hear();
    peer.say(Ack{.through = 1});
    EXPECT_TRUE(peer.say(act(test.id, test.seq)).empty()) << test.name;
    EXPECT_EQ(peer.refusal(), test.refused) << test.name;
    EXPECT_TRUE(has<Asked>(peer.say(act(14, 4)))) << test.name << ": the next is not used up";
  }
}

TEST(ServedSession, GivesAKeptReplyAgainAndBeginsNothingTwice) {
  Peer peer;
  peer.say(act(1, 1));
  peer.cut();
  peer.link({.requests = {1}});
  EXPECT_TRUE(peer.say(act(1, 1)).empty()) << "it is at work";
  EXPECT_TRUE(peer.hear().empty());
  peer.served.reply(1, {{"done", true}});
  EXPECT_EQ(peer.reply().ok, (base::Json{{"done", true}}));
  peer.cut();
  peer.link({.requests = {1}});
  EXPECT_TRUE(peer.say(act(1, 1)).empty());
  EXPECT_EQ(peer.reply().ok, (base::Json{{"done", true}}));
  EXPECT_TRUE(peer.say(act(1, 1)).empty());
  EXPECT_TRUE(peer.hear().empty()) << "once a link";
  EXPECT_EQ(peer.served.replies_kept(), 1u);
  peer.say(Ack{.also = {1}});
  EXPECT_EQ(peer.served.replies_kept(), 0u);
}

TEST(ServedSession, SurvivesWhoAcknowledgesAReplyThatIsYetToBeSent) {
  Peer peer;
  peer.say(act(1, 1));
  peer.served.reply(1, {{"n", 1}});
  peer.say(Ack{.through = 1});
  EXPECT_EQ(peer.reply().ok, (base::Json{{"n", 1}})) << "nobody can have had it";
  peer.cut();
  peer.link();
  peer.say(act(1, 1));
  peer.say(Ack{.through = 1});
  EXPECT_TRUE(peer.hear().empty()) << "it was sent before, and is acknowledged now";
  EXPECT_EQ(peer.served.replies_kept(), 0u);
}

// Its client has had more of it than it knows of: it was set back to an earlier state.
TEST(ServedSession, RefusesAnAcknowledgementOfWhatItWasNeverAsked) {
  for (const Ack& ack : {Ack{.through = 2}, Ack{.also = {2}}, Ack{.through = 1, .also = {3}}}) {
    Peer peer;
    peer.say(act(1, 1));
    peer.served.reply(1, base::Json::object());
    peer.hear();
    EXPECT_NE(peer.breaks(ack).find("set back"), std::string::npos);
  }
  Peer peer;
  Request next = act(1, 1);
  next.kept = 1;
  EXPECT_NE(peer.breaks(next).find("set back"), std::string::npos);
}

TEST(ServedSession, KeepsSoManyRepliesAndRefusesBeforeItActs) {
  Peer peer;
  std::uint32_t id = 0;
  for (std::int64_t seq = 1; seq <= static_cast<std::int64_t>(kRepliesMax); ++seq) {
    EXPECT_TRUE(has<Asked>(peer.say(act(++id, seq))));
    peer.served.reply(id, base::Json::object());
  }
  peer.hear();
  const auto next = static_cast<std::int64_t>(kRepliesMax) + 1;
  EXPECT_TRUE(peer.say(act(++id, next)).empty());
  EXPECT_EQ(peer.refusal(), FailureCode::kRepliesFull);
  EXPECT_TRUE(has<Asked>(peer.say(look(++id)))) << "what does not mutate is let in";
  Request acknowledging = act(++id, next);
  acknowledging.kept = 1;
  EXPECT_TRUE(has<Asked>(peer.say(acknowledging))) << "the number was not used up";
}

TEST(ServedSession, KeepsSoManyBytesOfRepliesAndRefusesBeforeItActs) {
  Peer peer;
  Request edit = act(1, 1);
  edit.down = 0;
  peer.say(edit);
  const std::size_t body = kReplyBytesMax - 2 * kReplyBytesUsual;
  EXPECT_FALSE(peer.served.reserve(1, kReplyBytesMax + 1));
  ASSERT_TRUE(peer.served.reserve(1, body));
  peer.served.reply_whole(1, base::Json::object(), std::string(body, 'x'));
  EXPECT_GE(peer.served.reply_bytes_kept(), body);
  EXPECT_TRUE(has<Asked>(peer.say(act(2, 2))));
  EXPECT_FALSE(peer.served.reserve(2, 3 * kReplyBytesUsual)) << "more than is left";
  peer.served.fail(2, failure(FailureCode::kRepliesFull, "no room"));
  EXPECT_TRUE(has<Asked>(peer.say(act(3, 3))));
  EXPECT_TRUE(peer.say(act(4, 4)).empty()) << "even a usual one would not fit";
  std::vector<FailureCode> refused;
  for (const Message& message : peer.hear())
    if (const auto* reply = std::get_if<Reply>(&message); reply && reply->error)
      refused.push_back(reply->error->code);
  EXPECT_EQ(refused, (std::vector{FailureCode::kRepliesFull, FailureCode::kRepliesFull}));
  EXPECT_LE(peer.served.reply_bytes_kept(), kReplyBytesMax);
  // The second refusal used its number up, and its reply is kept.
  peer.cut();
  peer.link({.requests = {1, 3, 4}, .receiving = {{1, 0, 1 << 20, false}}});
  EXPECT_TRUE(peer.say(act(4, 4)).empty());
  EXPECT_EQ(peer.refusal(), FailureCode::kRepliesFull);
  peer.say(Ack{.also = {2, 3, 4}});
  EXPECT_TRUE(peer.say(act(5, 5)).empty()) << "the large one is still kept";
}

TEST(ServedSession, AnswersSoManyRequestsAtOnce) {
  Peer peer;
  std::uint32_t id = 0;
  while (id < kRequestsMax) EXPECT_TRUE(has<Asked>(peer.say(look(++id))));
  EXPECT_TRUE(peer.say(look(++id)).empty());
  EXPECT_EQ(peer.refusal(), FailureCode::kBusy);
  peer.served.reply(1, base::Json::object());
  EXPECT_TRUE(has<Asked>(peer.say(look(++id))));
}

TEST(ServedSession, OpensSoManyStreams) {
  Peer peer;
  std::uint32_t id = 0;
  while (peer.served.streams_open() + 4 <= kStreamsMax) {
    Request spawn = look(++id);
    for (int i = 0; i < 4; ++i) spawn.streams.push_back({++id, 100});
    EXPECT_TRUE(has<Asked>(peer.say(spawn)));
    peer.served.reply(spawn.id, base::Json::object());
    peer.hear();
  }
  EXPECT_EQ(peer.served.streams_open(), kStreamsMax);
  EXPECT_TRUE(peer.say(fetch(++id)).empty());
  EXPECT_EQ(peer.refusal(), FailureCode::kBusy);
  EXPECT_TRUE(has<Asked>(peer.say(look(++id)))) << "one without streams";
}

// For its client they are over.
TEST(ServedSession, CountsNoDownloadsThatWereSentWhole) {
  Peer peer;
  std::uint32_t id = 0;
  for (std::int64_t seq = 1; seq <= 100; ++seq) {
    Request edit = fetch(++id);
    edit.seq = seq;
    EXPECT_TRUE(has<Asked>(peer.say(edit)));
    peer.served.reply_whole(edit.id, base::Json::object(), "before and after");
    EXPECT_TRUE(peer.reply().end);
  }
  for (std::size_t open = 0; open < kStreamsMax; ++open) {
    EXPECT_TRUE(has<Asked>(peer.say(fetch(++id))));
    peer.served.reply(id, base::Json::object());
  }
  EXPECT_TRUE(peer.say(fetch(++id)).empty());
}

TEST(ServedSession, HoldsSoManyRepliesForWhoDoesNotRead) {
  Peer peer;
  for (std::uint32_t id = 1; id <= kUnreadMax; ++id) {
    const bool refused = id % 2 == 0;
    peer.say(refused ? act(id, 7) : look(id));
    if (!refused) peer.served.reply(id, base::Json::object());
  }
  EXPECT_EQ(peer.breaks(look(5000)), "it does not read its replies");
  EXPECT_EQ(peer.hear().size(), kUnreadMax);
  EXPECT_TRUE(has<Asked>(peer.say(look(5000))));
}

TEST(ServedSession, HoldsSoManyBytesOfRepliesForWhoDoesNotRead) {
  Peer peer;
  const base::Json large = {{"x", std::string(960'000, 'y')}};
  std::size_t busy = 0;
  for (std::uint32_t id = 1; id <= 36; ++id) {
    peer.say(look(id));
    peer.served.reply(id, large);
    EXPECT_LE(peer.served.reply_bytes_kept(), kReplyBytesMax);
  }
  for (const Message& message : peer.hear()) busy += std::get<Reply>(message).error.has_value();
  EXPECT_EQ(busy, 2u);
  EXPECT_EQ(peer.served.reply_bytes_kept(), 0u);
}

TEST(ServedSession, DoesNotSendAReplyThatIsLongerThanAFrame) {
  Peer peer;
  peer.say(look(1));
  peer.served.reply(1, {{"x", std::string(kReplyHeaderBytesMax, 'y')}});
  EXPECT_EQ(peer.refusal(), FailureCode::kInternal);
}

TEST(ServedSession, RefusesAnIdThatIsInUse) {
  Peer peer;
  Request spawn = act(1, 1);
  spawn.streams = {{2, 100}, {3, std::nullopt}};
  peer.say(spawn);
  const std::string in_use = "an id is in use";
  EXPECT_EQ(peer.breaks(look(1)), in_use);
  EXPECT_EQ(peer.breaks(look(2)), in_use);
  EXPECT_EQ(peer.breaks(look(3)), in_use);
  Request twice = look(4);
  twice.streams = {{5, 1}, {5, 1}};
  EXPECT_EQ(peer.breaks(twice), in_use);
  twice.streams = {{4, 1}};
  EXPECT_EQ(peer.breaks(twice), in_use);
}

TEST(ServedSession, SendsASmallDownloadWithItsReplyAndForgetsIt) {
  Peer peer;
  peer.say(fetch(1));
  peer.served.reply_whole(1, {{"size", 3}}, "abc");
  EXPECT_EQ(peer.hear(),
            std::vector<Message>{
                (Reply{.id = 1, .ok = base::Json{{"size", 3}}, .payload = "abc", .end = true})});
  EXPECT_EQ(peer.served.streams_open(), 0u);
}

TEST(ServedSession, SendsADownloadAfterItsReply) {
  Peer peer;
  peer.say(fetch(1, 5));
  peer.served.append(1, "abc");
  EXPECT_TRUE(peer.hear().empty()) << "not before the reply";
  peer.served.reply(1, base::Json::object());
  peer.served.append(1, "defgh");
  peer.served.end(1);
  EXPECT_EQ(peer.hear(),
            (std::vector<Message>{Reply{.id = 1, .ok = base::Json::object(), .payload = "abcde"}}));
  EXPECT_TRUE(has<RoomMade>(peer.say(Credit{.stream = 1, .received = 5, .limit = 100})));
  EXPECT_EQ(peer.hear(),
            (std::vector<Message>{Data{.stream = 1, .offset = 5, .payload = "fgh", .end = true}}));
  EXPECT_EQ(peer.served.streams_open(), 1u) << "its end may be lost";
  peer.say(Credit{.stream = 1, .received = 8, .limit = 100, .ended = true});
  EXPECT_EQ(peer.served.streams_open(), 0u);
}

TEST(ServedSession, AFailureEndsAllThatItsRequestBrought) {
  Peer peer;
  Request spawn = act(1, 1);
  spawn.up = true;
  spawn.down = 10;
  spawn.streams = {{2, 100}, {3, std::nullopt}};
  peer.say(spawn);
  EXPECT_EQ(peer.served.streams_open(), 4u);
  peer.hear();
  peer.served.fail(1, failure(FailureCode::kSpawnFailed, "no such program"));
  EXPECT_EQ(peer.served.streams_open(), 0u);
  EXPECT_EQ(peer.hear().size(), 1u);
  EXPECT_TRUE(peer.say(Data{.stream = 3, .payload = "late"}).empty());
}

TEST(ServedSession, TakesAnUploadFromItsRequestOn) {
  Peer peer;
  Request put = act(1, 1);
  put.up = true;
  put.payload = "abc";
  peer.say(put);
  EXPECT_EQ(peer.served.take(1), (Piece{.offset = 0, .bytes = "abc"}));
  EXPECT_EQ(peer.hear(), (std::vector<Message>{Credit{1, 3, 3 + kStreamBytesMax, false}}));
  EXPECT_TRUE(has<Arrived>(peer.say(Data{.stream = 1, .offset = 3, .payload = "de", .end = true})));
  EXPECT_EQ(peer.served.take(1), (Piece{.offset = 3, .bytes = "de", .end = true}));
  peer.cut();
  peer.link({.requests = {1}});
  ASSERT_EQ(peer.theirs.receiving.size(), 1u) << "until it is answered";
  EXPECT_EQ(peer.theirs.receiving[0].received, 5);
  EXPECT_TRUE(peer.theirs.receiving[0].ended);
  peer.served.reply(1, base::Json::object());
  EXPECT_EQ(peer.served.streams_open(), 0u);
}

TEST(ServedSession, GoesOnAfterACutWhereEachSideIs) {
  Peer peer;
  Request spawn = act(1, 1);
  spawn.streams = {{2, 100}, {3, std::nullopt}};
  peer.say(spawn);
  peer.served.reply(1, base::Json::object());
  peer.served.append(2, "abcdef");
  peer.hear();
  peer.say(Data{.stream = 3, .offset = 0, .payload = "in"});
  peer.cut();
  peer.link({.receiving = {{2, 4, 100, false}}});
  ASSERT_EQ(peer.theirs.receiving.size(), 1u);
  EXPECT_EQ(peer.theirs.receiving[0].stream, 3u);
  EXPECT_EQ(peer.theirs.receiving[0].received, 2);
  EXPECT_EQ(peer.hear(), (std::vector<Message>{Data{.stream = 2, .offset = 4, .payload = "ef"}}));
}

TEST(ServedSession, TellsOfTheRoomThatAResumeMakes) {
  Peer peer;
  peer.say(Request{.id = 1, .op = "get", .down = 100});
  peer.served.reply(1, base::Json::object());
  while (const std::size_t room = peer.served.room(1))
    peer.served.append(1, std::string(room, 'x'));
  peer.hear();
  peer.cut();
  peer.served.link_up();
  peer.hear();
  const SessionEvents events =
      peer.say(Resume{.receiving = {{.stream = 1, .received = 100, .limit = 1000}}});
  EXPECT_TRUE(has<RoomMade>(events)) << "whoever fills the stream waits for it";
  EXPECT_EQ(peer.served.room(1), 100u);
}

TEST(ServedSession, DropsWhatThePeerDoesNotNameAfterACut) {
  Peer peer;
  peer.say(look(1));
  peer.say(fetch(2));
  peer.served.reply(2, base::Json::object());
  peer.served.append(2, "abc");
  peer.say(act(3, 1));
  peer.hear();
  peer.cut();
  peer.served.link_up();
  peer.served.next();
  const SessionEvents events = peer.say(Resume{});
  EXPECT_TRUE(has<Cancelled>(events)) << "the look";
  EXPECT_TRUE(has<Unwanted>(events)) << "the download";
  EXPECT_EQ(peer.served.streams_open(), 0u);
  EXPECT_EQ(peer.served.unanswered(), 1u) << "what mutates goes on";
  EXPECT_EQ(peer.served.replies_kept(), 1u);
}

TEST(ServedSession, RefusesAResumeThatCannotBe) {
  Peer peer;
  peer.say(fetch(1));
  peer.served.reply(1, base::Json::object());
  peer.served.append(1, "abc");
  peer.hear();
  peer.cut();
  peer.served.link_up();
  EXPECT_NE(peer.breaks(Resume{.receiving = {{1, 4, 100, false}}}), "it was accepted");
}

TEST(ServedSession, CancelsWhatDoesNotMutateAndTellsWhatDoes) {
  Peer peer;
  peer.say(fetch(1));
  peer.say(act(2, 1));
  EXPECT_TRUE(has<Cancelled>(peer.say(Cancel{1})));
  EXPECT_TRUE(has<Cancelled>(peer.say(Cancel{2})));
  peer.served.reply_whole(1, base::Json::object(), "late");
  peer.served.fail(2, failure(FailureCode::kFsAborted, "nothing was done"));
  EXPECT_EQ(peer.refusal(), FailureCode::kFsAborted);
  EXPECT_EQ(peer.served.streams_open(), 0u);
  EXPECT_TRUE(peer.say(Cancel{2}).empty()) << "it was answered";
  EXPECT_TRUE(peer.say(Cancel{77}).empty()) << "nobody knows it";
}

TEST(ServedSession, StopsWhatIsWantedNoMore) {
  Peer peer;
  Request spawn = act(1, 1);
  spawn.streams = {{2, 100}, {3, std::nullopt}};
  peer.say(spawn);
  peer.served.reply(1, base::Json::object());
  peer.hear();
  EXPECT_TRUE(has<Unwanted>(peer.say(Stop{2})));
  EXPECT_FALSE(peer.served.wants(2));
  peer.served.append(2, "nobody reads this");
  peer.served.stop(3);
  EXPECT_EQ(peer.hear(), std::vector<Message>{Stop{3}});
  EXPECT_EQ(peer.served.streams_open(), 0u);
}

TEST(ServedSession, KnowsWhatThePeerHasOfAStream) {
  Peer peer;
  Request spawn = act(1, 1);
  spawn.streams = {{2, 100}};
  peer.say(spawn);
  peer.served.reply(1, base::Json::object());
  peer.served.append(2, "0123456789");
  EXPECT_EQ(peer.served.acknowledged(2), 0);
  peer.hear();
  EXPECT_EQ(peer.served.acknowledged(2), 0) << "what was sent may be lost on its way";
  peer.say(Credit{.stream = 2, .received = 4, .limit = 100});
  EXPECT_EQ(peer.served.acknowledged(2), 4);
  peer.cut();
  peer.served.link_up();
  peer.served.next();
  EXPECT_TRUE(has<RoomMade>(peer.say(Resume{.receiving = {{2, 7, 100}}})))
      << "whoever waits for the peer hears of it";
  EXPECT_EQ(peer.served.acknowledged(2), 7);
  peer.served.end(2);
  peer.hear();
  EXPECT_TRUE(has<RoomMade>(peer.say(Credit{.stream = 2, .received = 10, .ended = true})));
  EXPECT_FALSE(peer.served.acknowledged(2)) << "it is over";
}

std::vector<std::int64_t> numbers_of_notices(Peer& peer) {
  std::vector<std::int64_t> numbers;
  for (const Message& message : peer.hear())
    if (const auto* notice = std::get_if<Notice>(&message)) numbers.push_back(notice->number);
  return numbers;
}

TEST(ServedSession, TellsEachNoticeUntilItWasHeard) {
  Peer peer;
  peer.served.tell("restored", "from a snapshot");
  peer.served.tell("lost", "processes");
  EXPECT_EQ(numbers_of_notices(peer), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(numbers_of_notices(peer).empty());
  peer.say(Ack{.notices = 1});
  peer.cut();
  peer.link();
  EXPECT_EQ(numbers_of_notices(peer), (std::vector<std::int64_t>{2}));
  peer.say(Ack{.notices = 2});
  peer.cut();
  peer.link();
  EXPECT_TRUE(numbers_of_notices(peer).empty());
  for (std::size_t i = 0; i < kNoticesMax + 1; ++i) peer.served.tell("k", "m");
  const auto numbers = numbers_of_notices(peer);
  EXPECT_EQ(numbers.size(), kNoticesMax);
  EXPECT_EQ(numbers.front(), 4) << "the oldest made room";
}

TEST(ServedSession, AStalledReaderHoldsNobodyBack) {
  Peer peer;
  peer.say(fetch(1, 0));
  peer.served.reply(1, base::Json::object());
  while (const std::size_t room = peer.served.room(1))
    peer.served.append(1, std::string(room, 'x'));
  EXPECT_EQ(peer.served.stream_bytes_held(), kStreamBytesMax);
  peer.hear();
  peer.say(fetch(2));
  peer.served.reply_whole(2, base::Json::object(), "quick");
  EXPECT_EQ(peer.reply().payload, "quick");
  peer.say(look(3));
  peer.served.reply(3, base::Json::object());
  EXPECT_EQ(peer.reply().id, 3u);
}

}  // namespace
}  // namespace wire
