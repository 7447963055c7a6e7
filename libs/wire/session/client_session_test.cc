#include "libs/wire/session/client_session.h"

#include <gtest/gtest.h>

#include "libs/wire/proof.h"

namespace wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A client and the messages of the server that it has a link to.
class Server {
 public:
  Server() { welcome(); }

  static Welcome welcome_to(std::string session, bool resumed) {
    return {.link = "link-1",
            .session = std::string(32, session[0]),
            .resumed = resumed,
            .instance = "i-1",
            .uid = "uid-1",
            .cwd = "/w",
            .workspace_root = "/w"};
  }
  // A link that shows no token, through welcome and resume.
  void welcome(std::string session = "a", bool resumed = false, Resume resume = {}) {
    client.dial(std::optional<std::string>(), new_nonce(), now);
    hello = std::get<Hello>(*hear());
    say(welcome_to(std::move(session), resumed));
    theirs = std::get<Resume>(*hear());
    say(std::move(resume));
  }
  void say(Message message) { client.receive(to_frame(std::move(message)), now); }
  std::optional<Message> hear() {
    const auto frame = client.next();
    if (!frame) return std::nullopt;
    return *to_message(*frame);
  }
  std::vector<Message> hear_all() {
    std::vector<Message> heard;
    while (auto message = hear()) heard.push_back(*std::move(message));
    return heard;
  }
  template <typename Event>
  std::vector<Event> events() {
    std::vector<Event> found;
    for (ClientEvent& event : client.take_events())
      if (auto* one = std::get_if<Event>(&event)) found.push_back(std::move(*one));
    return found;
  }
  std::uint32_t ask(Call call) { return *client.ask(std::move(call)); }

  base::Moment now{seconds(1000)};
  ClientSession client{{.name = "test"}};
  Hello hello;
  Resume theirs;
};

const base::Json kNothing = base::Json::object();
Call look() { return {.op = "look"}; }
Call act() { return {.op = "act", .mutating = true}; }

const std::string kKey = derive_key("fleet", TokenKind::kAttach, "uid-1", 3);
SplitToken token() { return *split_token(sign({.uid = "uid-1", .epoch = 3}, kKey)); }

TEST(ClientSession, ShowsItsTokenToNobody) {
  Server server;
  ClientSession client({.name = "test"});
  const Nonces mine{new_nonce(), new_nonce()};
  client.dial(token(), mine.client, server.now);
  std::string sent = encode(*client.next());
  client.receive(
      to_frame(Challenge{mine.server, link_proof(ProofOf::kExecutor, token().secret, mine)}),
      server.now);
  const Frame prove = *client.next();
  sent += encode(prove);
  EXPECT_TRUE(is_link_proof(std::get<Prove>(*to_message(prove)).proof, ProofOf::kClient,
                            token().secret, mine));
  const std::string whole = sign({.uid = "uid-1", .epoch = 3}, kKey);
  EXPECT_NE(sent.find(token().claims), std::string::npos);
  EXPECT_EQ(sent.find(whole.substr(whole.rfind('.') + 1)), std::string::npos);
  client.receive(to_frame(Server::welcome_to("a", false)), server.now);
  EXPECT_EQ(to_message(*client.next())->index(), Message(Resume{}).index());
}

TEST(ClientSession, HangsUpOnAnImpostorBeforeItProvesAnything) {
  const Nonces nonces{new_nonce(), new_nonce()};
  const std::string guess = link_proof(ProofOf::kExecutor, "another key", nonces);
  const struct {
    const char* name;
    Message answer;
  } cases[] = {
      {"it_guesses", Challenge{nonces.server, guess}},
      {"it_asks_for_nothing", Server::welcome_to("a", false)},
      {"it_begins_to_talk", Resume{}},
  };
  for (const auto& test : cases) {
    ClientSession client({.name = "test"});
    client.dial(token(), nonces.client, base::Moment{});
    client.next();
    client.receive(to_frame(test.answer), base::Moment{});
    const auto last = to_message(*client.next());
    EXPECT_EQ(std::get<Close>(*last).reason, CloseReason::kImpostor) << test.name;
    EXPECT_FALSE(client.next()) << test.name;
    EXPECT_TRUE(client.over()) << test.name;
  }
}

TEST(ClientSession, AsksAndIsAnswered) {
  Server server;
  const auto id = server.ask(look());
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Request{.id = id, .op = "look"}}));
  server.say(Reply{.id = id, .ok = base::Json{{"n", 1}}});
  server.say(Reply{.id = id, .ok = base::Json{{"n", 2}}});
  const auto answers = server.events<Answered>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].ok, (base::Json{{"n", 1}}));
}

TEST(ClientSession, AsksBeforeItHasALinkAndIsHeardOnTheFirst) {
  ClientSession client({.name = "test"});
  ASSERT_TRUE(client.ask(act()));
  EXPECT_FALSE(client.next());
  EXPECT_EQ(client.waiting(), 1u);
}

TEST(ClientSession, SendsAgainAfterACutWhatWasNotAnswered) {
  Server server;
  const auto first = server.ask(act());
  const auto second = server.ask(look());
  const auto third = server.ask(act());
  server.hear_all();
  server.say(Reply{.id = first, .ok = kNothing});
  server.client.cut();
  EXPECT_FALSE(server.hear());
  server.welcome("a", true);
  EXPECT_EQ(server.hello.session, std::string(32, 'a'));
  EXPECT_EQ(server.theirs.requests, (std::vector{second, third}));
  EXPECT_EQ(server.hear_all(),
            (std::vector<Message>{Ack{.through = 1}, Request{.id = second, .op = "look"},
                                  Request{.id = third, .op = "act", .seq = 2}}));
}

// What becomes of a request when its session is gone, by how far it came.
TEST(ClientSession, ANewSessionKnowsNothingOfTheOldOne) {
  Server server;
  const auto looked = server.ask(look());
  const auto acted = server.ask(act());
  Call fetch = look();
  fetch.down = true;
  const auto fetched = server.ask(fetch);
  const auto half_fetched = server.ask(fetch);
  server.hear_all();
  server.say(Reply{.id = half_fetched, .ok = kNothing, .payload = "half"});
  server.client.cut();
  const auto never_sent = server.ask(act());
  server.client.take_events();
  server.welcome("b", false);

  const auto failed = [&] {
    std::vector<std::pair<std::uint32_t, FailureCode>> failed;
    for (const Failed& one : server.events<Failed>()) failed.emplace_back(one.id, one.failure.code);
    return failed;
  }();
  EXPECT_EQ(failed, (std::vector{std::pair{acted, FailureCode::kOutcomeUnknown}}));
  const auto piece = server.client.take(half_fetched);
  ASSERT_TRUE(piece && piece->end);
  EXPECT_EQ(piece->bytes, "half");
  EXPECT_EQ(piece->error->code, FailureCode::kLost);
  EXPECT_TRUE(server.theirs.requests.empty());
  std::vector<std::pair<std::uint32_t, std::optional<std::int64_t>>> sent;
  for (const Message& message : server.hear_all())
    if (const auto* request = std::get_if<Request>(&message))
      sent.emplace_back(request->id, request->seq);
  EXPECT_EQ(sent, (std::vector<std::pair<std::uint32_t, std::optional<std::int64_t>>>{
                      {looked, std::nullopt}, {fetched, std::nullopt}, {never_sent, 1}}));
}

TEST(ClientSession, NumbersMutatingRequestsInTheOrderTheyAreAsked) {
  Server server;
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 3; ++i) {
    server.ask(act());
    server.ask(look());
  }
  for (const Message& message : server.hear_all())
    if (const auto* request = std::get_if<Request>(&message); request && request->seq)
      numbers.push_back(*request->seq);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(ClientSession, AcknowledgesRepliesAlsoOutOfOrder) {
  Server server;
  std::vector<std::uint32_t> ids;
  ids.reserve(4);
  for (int i = 0; i < 4; ++i) ids.push_back(server.ask(act()));
  server.hear_all();
  server.say(Reply{.id = ids[0], .ok = kNothing});
  server.say(Reply{.id = ids[2], .error = failure(FailureCode::kFsIoError, "x")});
  EXPECT_TRUE(server.hear_all().empty()) << "not for each at once";
  server.client.tick(server.now);
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Ack{.through = 1, .also = {3}}}));
  server.say(Reply{.id = ids[1], .ok = kNothing});
  server.client.tick(server.now);
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Ack{.through = 3}}));
  server.client.tick(server.now);
  EXPECT_TRUE(server.hear_all().empty()) << "it was said";
  server.say(Reply{.id = ids[3], .ok = kNothing});
  const auto next = server.ask(act());
  EXPECT_EQ(server.hear_all(),
            (std::vector<Message>{Request{.id = next, .op = "act", .seq = 5, .kept = 4}}));
}

TEST(ClientSession, WaitsWhereTheServersLimitsAre) {
  ClientSession client({.name = "test"});
  base::Moment now;
  client.dial(std::optional<std::string>(), new_nonce(), now);
  client.next();
  Welcome welcome = Server::welcome_to("a", false);
  welcome.limits.requests = 3;
  welcome.limits.replies = 2;
  client.receive(to_frame(welcome), now);
  client.receive(to_frame(Resume{}), now);
  client.next();
  const auto sent = [&] {
    std::size_t requests = 0;
    while (const auto frame = client.next()) requests += frame->type == FrameType::kRequest;
    return requests;
  };
  std::vector<std::uint32_t> acts;
  acts.reserve(3);
  for (int i = 0; i < 3; ++i) acts.push_back(*client.ask(act()));
  EXPECT_EQ(sent(), 2u) << "so many replies may be kept";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.ask(look()));
  EXPECT_EQ(sent(), 1u) << "so many requests may be unanswered, and a look passes an act by";
  client.receive(to_frame(Reply{.id = acts[0], .ok = kNothing}), now);
  EXPECT_EQ(sent(), 1u) << "the acknowledgement makes room";
}

// What an operation has no room for uses a number like any other.
TEST(ClientSession, GoesOnWhenAnOperationIsBusy) {
  Server server;
  const auto first = server.ask(act());
  server.hear_all();
  server.say(Reply{.id = first, .error = failure(FailureCode::kBusy, "too much runs")});
  EXPECT_EQ(server.events<Failed>().at(0).failure.code, FailureCode::kBusy);
  EXPECT_FALSE(server.client.over());
  server.ask(act());
  const auto second = server.hear();
  ASSERT_TRUE(second);
  EXPECT_EQ(std::get<Request>(*second).seq, 2);
  server.say(Reply{.id = std::get<Request>(*second).id,
                   .error = failure(FailureCode::kOutOfSequence, "1 is missing")});
  EXPECT_TRUE(server.client.over()) << "it counts otherwise";
}

TEST(ClientSession, LetsSoManyWait) {
  Server server;
  for (std::size_t i = 0; i < kRequestsMax; ++i) ASSERT_TRUE(server.client.ask(look()));
  EXPECT_EQ(server.client.ask(look()).error().code, base::ErrorCode::kRateLimited);
  Server other;
  Call fetch = look();
  fetch.down = true;
  std::size_t asked = 0;
  while (other.client.ask(fetch)) ++asked;
  EXPECT_LE(other.client.streams_open() + asked, kStreamsMax);
  EXPECT_GT(asked, 100u);
  Call large = look();
  large.args = {{"x", std::string(1u << 20, 'y')}};
  EXPECT_EQ(Server().client.ask(large).error().code, base::ErrorCode::kInvalid);
}

TEST(ClientSession, SendsTheBeginningOfAnUploadWithItsRequest) {
  Server server;
  Call put = act();
  put.up = true;
  const auto id = server.ask(put);
  server.client.append(id, std::string(kFirstBytesMax, 'x') + "rest");
  server.client.end(id);
  const auto heard = server.hear_all();
  ASSERT_EQ(heard.size(), 1u);
  const auto& request = std::get<Request>(heard[0]);
  EXPECT_EQ(request.payload.size(), kFirstBytesMax);
  EXPECT_FALSE(request.end);
  server.say(Credit{.stream = id, .received = 65'536, .limit = 70'000});
  EXPECT_EQ(server.events<StreamRoom>().size(), 1u);
  EXPECT_EQ(
      server.hear_all(),
      (std::vector<Message>{Data{.stream = id, .offset = 65'536, .payload = "rest", .end = true}}));
}

TEST(ClientSession, GoesOnWithAnUploadWhereTheServerIs) {
  const struct {
    const char* name;
    Resume resume;
    std::vector<Message> data;
    std::size_t rooms;  // That were told of.
  } cases[] = {
      {"it_saw_some",
       {.receiving = {{1, 2, 100, false}}},
       {Data{.stream = 1, .offset = 2, .payload = "cdef", .end = true}},
       1},
      {"it_saw_all", {.receiving = {{1, 6, 100, true}}}, {}, 0},
      {"it_saw_nothing", {}, {Data{.stream = 1, .offset = 0, .payload = "abcdef", .end = true}}, 0},
  };
  for (const auto& test : cases) {
    Server server;
    Call put = act();
    put.up = true;
    ASSERT_EQ(server.ask(put), 1u);
    server.client.append(1, "abcdef");
    server.client.end(1);
    server.hear_all();
    server.client.cut();
    server.welcome("a", true, test.resume);
    auto heard = server.hear_all();
    ASSERT_FALSE(heard.empty()) << test.name;
    EXPECT_EQ(heard[0], Message(Request{.id = 1, .op = "act", .seq = 1, .up = true})) << test.name;
    heard.erase(heard.begin());
    EXPECT_EQ(heard, test.data) << test.name;
    EXPECT_EQ(server.events<StreamRoom>().size(), test.rooms) << test.name;
  }
}

TEST(ClientSession, CancelsByWhatWasAsked) {
  Server server;
  const auto unsent_link = [] { return ClientSession({.name = "test"}); };
  ClientSession idle = unsent_link();
  const auto never = *idle.ask(act());
  idle.cancel(never);
  EXPECT_EQ(idle.waiting(), 0u) << "nobody has heard of it";

  Call fetch = look();
  fetch.down = true;
  const auto looked = server.ask(fetch);
  const auto acted = server.ask(act());
  server.hear_all();
  server.client.cancel(looked);
  server.client.cancel(acted);
  const auto failed = server.events<Failed>();
  ASSERT_EQ(failed.size(), 1u) << "what mutates is answered by the server";
  EXPECT_EQ(failed[0].id, looked);
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Cancel{looked}, Cancel{acted}, Stop{looked}}));
  server.client.cut();
  server.welcome("a", true);
  EXPECT_EQ(server.theirs.requests, (std::vector{acted}));
  EXPECT_EQ(server.hear_all(),
            (std::vector<Message>{Request{.id = acted, .op = "act", .seq = 1}, Cancel{acted}}));
}

// Else a server that is full refuses what this side has room for.
TEST(ClientSession, TellsWhatItGivesUpBeforeItAsksForMore) {
  Server server;
  Call fetch = look();
  fetch.down = true;
  const auto running = server.ask(fetch);
  const auto looked = server.ask(look());
  server.hear_all();
  server.say(Reply{.id = running, .ok = kNothing});
  server.client.stop(running);
  server.client.cancel(looked);
  const auto next = server.ask(look());
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Cancel{looked}, Stop{running},
                                                     Request{.id = next, .op = "look"}}));
}

// Of what concerns a stream the server hears once it knows the stream.
TEST(ClientSession, ToldOfAStreamBeforeItsRequestWouldBeToldForNothing) {
  Server server;
  Welcome narrow = Server::welcome_to("a", true);
  narrow.limits.requests = 1;
  server.say(narrow);
  server.hear();
  server.say(Resume{});
  const auto before = server.ask(look());
  Call spawn = act();
  const auto in = server.client.new_stream(), out = server.client.new_stream();
  spawn.to_server = {in};
  spawn.to_client = {out};
  const auto spawned = server.ask(spawn);
  server.client.end(in);
  server.client.stop(out);
  for (const Message& message : server.hear_all()) {
    EXPECT_FALSE(std::holds_alternative<Data>(message));
    EXPECT_NE(message, Message(Request{.id = spawned})) << "there is no room for it yet";
  }
  server.say(Reply{.id = before, .ok = kNothing});
  const auto heard = server.hear_all();
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(std::get<Request>(heard[0]).id, spawned);
  EXPECT_EQ(heard[1], Message(Stop{out}));
  EXPECT_EQ(heard[2], Message(Data{.stream = in, .end = true}));
}

TEST(ClientSession, DoesNotGoOnWithTheSessionOfAnotherExecutor) {
  Server server;
  const auto acted = server.ask(act());
  server.hear_all();
  server.client.cut();
  server.client.dial(std::optional<std::string>(), new_nonce(), server.now);
  server.hear();
  Welcome another = Server::welcome_to("a", true);
  another.instance = "i-2";
  server.say(another);
  EXPECT_EQ(std::get<Close>(*server.hear()).reason, CloseReason::kProtocol);
  EXPECT_TRUE(server.client.over());
  EXPECT_EQ(server.client.waiting(), 1u) << acted << " is not sent to it";
}

TEST(ClientSession, HearsEachNoticeOnce) {
  Server server;
  server.say(Notice{.number = 1, .kind = "restored", .message = "m"});
  server.say(Notice{.number = 2, .kind = "lost", .message = "m"});
  EXPECT_EQ(server.events<Noticed>().size(), 2u);
  server.client.cut();
  server.welcome("a", true);
  server.say(Notice{.number = 2, .kind = "lost", .message = "m"});
  EXPECT_TRUE(server.events<Noticed>().empty());
  server.client.tick(server.now);
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Ack{.notices = 2}}));
}

TEST(ClientSession, AWelcomeOnAnOpenLinkIsANewLink) {
  Server server;
  const auto id = server.ask(act());
  server.hear_all();
  server.say(Server::welcome_to("a", true));
  server.say(Resume{});
  EXPECT_EQ(server.hear_all(), (std::vector<Message>{Resume{.link = "link-1", .requests = {id}},
                                                     Request{.id = id, .op = "act", .seq = 1}}));
}

TEST(ClientSession, ClosesALinkThatBreaksTheRules) {
  const struct {
    const char* name;
    Message message;
  } cases[] = {
      {"a_second_resume", Resume{}},
      {"what_only_clients_send", Cancel{1}},
      {"a_gap", Data{.stream = 1, .offset = 5, .payload = "x"}},
      {"more_than_its_credit", Data{.stream = 1, .payload = std::string(kPayloadBytesMax, 'x')}},
      {"credit_for_what_was_not_sent", Credit{.stream = 2, .received = 9, .limit = 10}},
      {"anothers_session", Server::welcome_to("b", true)},
  };
  for (const auto& test : cases) {
    Server server;
    Call talk = act();
    talk.to_client = {server.client.new_stream()};
    talk.to_server = {server.client.new_stream()};
    server.ask(talk);
    server.hear_all();
    // Five full frames are beyond any credit.
    for (int i = 0; i < 5 && !server.client.over(); ++i) {
      Message message = test.message;
      if (auto* data = std::get_if<Data>(&message); data && !data->offset)
        data->offset = i * static_cast<std::int64_t>(kPayloadBytesMax);
      server.say(message);
    }
    const auto closed = server.events<Closed>();
    ASSERT_EQ(closed.size(), 1u) << test.name;
    EXPECT_EQ(closed[0].close.reason, CloseReason::kProtocol) << test.name;
    EXPECT_EQ(std::get<Close>(*server.hear()).reason, CloseReason::kProtocol) << test.name;
    EXPECT_EQ(server.client.waiting(), 1u) << test.name << ": it may go on over another link";
  }
}

TEST(ClientSession, AsksAfter20SecondsOfSilenceAndHangsUpAfter45) {
  Server server;
  server.now += milliseconds(19'999);
  server.client.tick(server.now);
  EXPECT_TRUE(server.hear_all().empty());
  server.now += milliseconds(1);
  server.client.tick(server.now);
  EXPECT_EQ(server.hear_all(), std::vector<Message>{Ping{}});
  server.say(Pong{});
  server.now += seconds(44);
  server.client.tick(server.now);
  EXPECT_FALSE(server.client.over());
  server.now += seconds(1);
  server.client.tick(server.now);
  EXPECT_TRUE(server.client.over());
  EXPECT_EQ(server.events<Closed>()[0].close.reason, CloseReason::kSilent);
}

TEST(ClientSession, GivesUpAServerThatDoesNotWelcomeIt) {
  ClientSession client({.name = "test"});
  base::Moment now;
  client.dial(token(), new_nonce(), now);
  client.tick(now + kOpenWithin - milliseconds(1));
  EXPECT_FALSE(client.over());
  client.tick(now + kOpenWithin);
  EXPECT_TRUE(client.over());
}

TEST(ClientSession, RenewsWithTheNoncesOfItsLink) {
  ClientSession client({.name = "test"});
  const Nonces nonces{new_nonce(), new_nonce()};
  client.dial(token(), nonces.client, base::Moment{});
  client.next();
  client.receive(
      to_frame(Challenge{nonces.server, link_proof(ProofOf::kExecutor, token().secret, nonces)}),
      base::Moment{});
  client.next();
  client.renew(token());
  EXPECT_FALSE(client.next()) << "not before it is welcome";
  client.receive(to_frame(Server::welcome_to("a", false)), base::Moment{});
  client.receive(to_frame(Resume{}), base::Moment{});
  client.next();
  client.renew(token());
  const auto renewal = std::get<Renew>(*to_message(*client.next()));
  EXPECT_TRUE(is_link_proof(*renewal.proof, ProofOf::kRenewal, token().secret, nonces));
  client.receive(to_frame(Renewed{Ceiling::kReadOnly, 900'000}), base::Moment{});
  bool renewed = false;
  for (const auto& event : client.take_events())
    renewed |= std::holds_alternative<CredentialRenewed>(event);
  EXPECT_TRUE(renewed);
}

TEST(ClientSession, BeginsAnewWithNothingOfASessionThatItAbandons) {
  Server server;
  const auto changed = *server.client.ask({.op = "change", .mutating = true});
  const auto looked = *server.client.ask({.op = "look"});
  server.hear_all();
  const auto unsent = *server.client.ask({.op = "change", .mutating = true});
  server.client.take_events();
  server.client.abandon(failure(FailureCode::kInternal, "it broke"));
  std::map<std::uint32_t, FailureCode> failed;
  for (const auto& event : server.client.take_events())
    if (const auto* one = std::get_if<Failed>(&event)) failed[one->id] = one->failure.code;
  EXPECT_EQ(failed, (std::map<std::uint32_t, FailureCode>{{changed, FailureCode::kOutcomeUnknown},
                                                          {looked, FailureCode::kInternal},
                                                          {unsent, FailureCode::kInternal}}));
  EXPECT_EQ(server.client.waiting(), 0u);
  server.client.dial(std::nullopt, new_nonce(), base::Moment{});
  EXPECT_FALSE(std::get<Hello>(*to_message(*server.client.next())).session);
}

TEST(ClientSession, EndsItsSessionWhenItIsFinished) {
  Server server;
  server.client.finish();
  EXPECT_EQ(server.hear_all(), std::vector<Message>{Close{CloseReason::kEnd}});
  EXPECT_TRUE(server.client.over());
}

}  // namespace
}  // namespace wire
