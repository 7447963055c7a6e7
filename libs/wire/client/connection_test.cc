#include "libs/wire/client/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <filesystem>

#include "libs/base/testing/eventually.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/client/testing/echo_service.h"

namespace wire {
namespace {

using base::Milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionSettings settings() {
    return {.socket = socket_, .session = {.name = "test"}, .credential = [this] {
              return base::Result<Credential>(server_.credential());
            }};
  }
  Until soon() { return {.moment = clock_.now() + seconds(20)}; }

  // A pipe: its reading and its writing end.
  static std::pair<base::Fd, base::Fd> pipe(int flags = 0) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | flags), 0);
    return {base::Fd(ends[0]), base::Fd(ends[1])};
  }
  // A request with a stream to here, once it was answered.
  static std::uint32_t begin(Connection& connection, const std::string& op, base::Json args,
                             std::optional<std::uint32_t> in = {}) {
    const std::uint32_t out = connection.session().new_stream();
    args["out"] = out;
    if (in) args["in"] = *in;
    Call call{.op = op, .args = std::move(args), .mutating = true, .to_client = {out}};
    if (in) call.to_server = {*in};
    EXPECT_TRUE(connection.session().ask(std::move(call)));
    return out;
  }

  // Its reader takes nothing, and has what is on its way held back.
  void until_nothing_moves(Connection& connection, Sink& sink) const {
    std::int64_t before = -1;
    for (int still = 0; still < 20;) {
      std::array<pollfd, 1> set = {sink.wants(connection.session())};
      connection.turn(set, clock_.now() + Milliseconds(10));
      sink.work(connection.session(), set[0].revents);
      const auto held =
          static_cast<std::int64_t>(connection.session().stream_bytes_held()) + sink.bytes();
      still = held == before ? still + 1 : 0;
      before = held;
    }
  }

  base::SystemClock clock_;
  base::TemporaryFolder folder_;
  std::string socket_ = folder_ / "agentd.sock";
  EchoService service_;
  Server server_{socket_, service_};
};

TEST_F(ConnectionTest, OpensAndAsks) {
  Connection connection(settings(), clock_);
  const auto welcome = connection.open(soon());
  ASSERT_TRUE(welcome) << welcome.error().message;
  EXPECT_EQ(welcome->uid, "uid-1");
  const auto ok = connection.ask({.op = "act", .args = {{"key", "a"}}, .mutating = true}, soon());
  ASSERT_TRUE(ok) << ok.error().message;
  EXPECT_EQ(*ok, (base::Json{{"did", "act"}}));
  connection.finish();
  EXPECT_TRUE(base::eventually([&] {
    int ended = 0;
    server_.with([&](SessionHost&) { ended = service_.sessions_ended(); });
    return ended == 1;
  })) << "the session ends with its client, not with its lease";
}

TEST_F(ConnectionTest, SaysAtOnceThatNobodyListens) {
  auto nowhere = settings();
  nowhere.socket = folder_ / "other.sock";
  Connection connection(nowhere, clock_);
  const auto welcome = connection.open();
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code, FailureCode::kUnavailable);
  EXPECT_THAT(welcome.error().message, HasSubstr("other.sock"));

  auto too_long = settings();
  too_long.socket = std::string(200, 'x');
  EXPECT_EQ(Connection(too_long, clock_).open().error().code, FailureCode::kInvalid);
}

TEST_F(ConnectionTest, SaysThatItHasNoCredential) {
  auto without = settings();
  without.credential = [] {
    return base::Result<Credential>(base::error(base::ErrorCode::kDenied, "no token"));
  };
  EXPECT_EQ(Connection(without, clock_).open().error(), failure(FailureCode::kDenied, "no token"));
}

TEST_F(ConnectionTest, AsksAgainForACredentialThatCannotBeHadNow) {
  auto seldom = settings();
  int asked = 0;
  seldom.credential = [&]() -> base::Result<Credential> {
    if (++asked % 3 != 0)
      return base::error(base::ErrorCode::kUnavailable, "the token's server: 503");
    return server_.credential();
  };
  Connection connection(seldom, clock_);
  const auto welcome = connection.open(soon());
  ASSERT_TRUE(welcome) << welcome.error().message;
  server_.cut();
  const auto ok = connection.ask({.op = "act", .args = {{"key", "a"}}, .mutating = true}, soon());
  ASSERT_TRUE(ok) << ok.error().message;
  EXPECT_EQ(connection.welcome()->session, welcome->session);
  EXPECT_EQ(asked, 6);
}

TEST_F(ConnectionTest, EndsWithItsReasonOnceNoCredentialWillCome) {
  auto dismissed = settings();
  base::ErrorCode refusal = base::ErrorCode::kUnavailable;
  bool refuses = false;
  dismissed.session.lease_seconds = 1;
  dismissed.credential = [&]() -> base::Result<Credential> {
    if (refuses) return base::error(refusal, "the token's server: no");
    return server_.credential();
  };
  for (const auto code : {base::ErrorCode::kDenied, base::ErrorCode::kUnavailable}) {
    refuses = false;
    Connection connection(dismissed, clock_);
    ASSERT_TRUE(connection.open(soon()));
    refuses = true;
    refusal = code;
    server_.cut();
    const auto late = connection.ask({.op = "never"}, soon());
    ASSERT_TRUE(connection.over());
    EXPECT_THAT(late.error().message, HasSubstr("the token's server: no")) << "or with the lease";
    EXPECT_EQ(connection.over()->code,
              code == base::ErrorCode::kDenied ? FailureCode::kDenied : FailureCode::kUnavailable);
  }
}

TEST_F(ConnectionTest, GivesUpWhenItIsDeniedWithANewCredentialToo) {
  auto stranger = settings();
  int asked = 0;
  stranger.credential = [&asked] {
    ++asked;
    return base::Result<Credential>(std::optional<std::string>("sf1.e30.AAAA"));
  };
  const auto welcome = Connection(stranger, clock_).open(soon());
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code, FailureCode::kDenied);
  EXPECT_EQ(asked, 2);
}

// covers: M8
TEST_F(ConnectionTest, WaitsOnlyAsLongAsItIsTold) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const auto late = connection.ask({.op = "never"}, {.moment = clock_.now() + Milliseconds(30)});
  EXPECT_EQ(late.error().code, FailureCode::kUnavailable);

  const base::Fd wake(::eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ(connection.ask({.op = "never"}, {.wake = wake.get()}).error().code,
            FailureCode::kUnavailable);
  // What may have been done is not said to have failed.
  Call act{.op = "never", .mutating = true};
  EXPECT_EQ(connection.ask(act, {.moment = clock_.now() + Milliseconds(30)}).error().code,
            FailureCode::kOutcomeUnknown);
  EXPECT_TRUE(connection.ask({.op = "act", .args = {{"key", "b"}}, .mutating = true}, soon()))
      << "and it goes on";
}

TEST_F(ConnectionTest, OpensOnlyAsLongAsItIsTold) {
  server_.with([](SessionHost& host) { host.shut_down(); });  // Somebody is there, for nobody.
  auto hasty = settings();
  hasty.open_within = Milliseconds(100);
  const auto welcome = Connection(hasty, clock_).open();
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code, FailureCode::kUnavailable);
  EXPECT_THAT(welcome.error().message, HasSubstr("no answer in time"));
}

TEST_F(ConnectionTest, SaysAtOnceThatTheSandboxStandsStill) {
  server_.with([this](SessionHost& host) { host.quiesce({clock_.now(), clock_.wall()}); });
  const auto welcome = Connection(settings(), clock_).open();
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code, FailureCode::kUnavailable);
}

// covers: M8
TEST_F(ConnectionTest, BeginsAnewWhenTheProtocolWasBroken) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const std::string session = connection.welcome()->session;
  const auto under_way = *connection.session().ask({.op = "never", .mutating = true});
  const auto end = clock_.now() + seconds(20);
  const auto unanswered = [&](std::size_t count) {
    bool so = false;
    server_.with([&](SessionHost& host) { so = host.find(session)->unanswered() == count; });
    return so;
  };
  while (!unanswered(1) && clock_.now() < end) connection.turn({}, clock_.now() + Milliseconds(5));
  server_.with([&](SessionHost& host) { host.refuse(*host.link_of(session), "a gap"); });
  while (connection.welcome()->session == session && clock_.now() < end) connection.turn({}, end);
  EXPECT_TRUE(connection.ask({.op = "act", .args = {{"key", "e"}}, .mutating = true}, soon()));
  EXPECT_NE(connection.welcome()->session, session);
  EXPECT_FALSE(connection.over());
  std::vector<FailureCode> codes;
  for (const auto& event : connection.take_events())
    if (const auto* failed = std::get_if<Failed>(&event); failed && failed->id == under_way)
      codes.push_back(failed->failure.code);
  EXPECT_EQ(codes, std::vector{FailureCode::kOutcomeUnknown});
}

// covers: 4.7
TEST_F(ConnectionTest, GoesOnWhenTheServerComesBack) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const std::string session = connection.welcome()->session;
  server_.go_away();
  const auto end = clock_.now() + seconds(20);
  while (!connection.cut_since() && clock_.now() < end) connection.turn({}, end);
  ASSERT_TRUE(connection.cut_since());
  server_.come_back();
  EXPECT_TRUE(connection.ask({.op = "act", .args = {{"key", "c"}}, .mutating = true}, soon()));
  EXPECT_FALSE(connection.cut_since());
  EXPECT_EQ(connection.welcome()->session, session);
}

// covers: 4.7
TEST_F(ConnectionTest, GivesUpWhenTheLeaseIsOver) {
  auto brief = settings();
  brief.session.lease_seconds = 1;
  Connection connection(brief, clock_);
  ASSERT_TRUE(connection.open(soon()));
  server_.go_away();
  const auto lost = connection.ask({.op = "act", .args = {{"key", "d"}}, .mutating = true}, soon());
  ASSERT_FALSE(lost);
  ASSERT_TRUE(connection.over());
  EXPECT_THAT(connection.over()->message, HasSubstr("no link"));
  EXPECT_THAT(lost.error().code, testing::AnyOf(FailureCode::kUnavailable,  // It was never sent.
                                                FailureCode::kOutcomeUnknown));
}

// covers: M8
TEST_F(ConnectionTest, NeverSaysOfWhatMayHaveBeenDoneThatItWasNot) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const auto id = connection.session().ask({.op = "never", .mutating = true});
  connection.turn({}, clock_.now());
  server_.begin_anew();
  std::optional<Failure> failed;
  const auto end = clock_.now() + seconds(20);
  while (!failed && clock_.now() < end) {
    connection.turn({}, end);
    for (const auto& event : connection.take_events())
      if (const auto* one = std::get_if<Failed>(&event); one && one->id == *id)
        failed = one->failure;
  }
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code, FailureCode::kOutcomeUnknown);
}

// covers: 4.7
TEST_F(ConnectionTest, EveryByteComesOnceThroughCutsInBothDirections) {
  constexpr std::int64_t kBytes = 3 << 20;
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  auto [typed, typing] = pipe(O_NONBLOCK);
  const auto [shown, showing] = pipe();
  ::fcntl(shown.get(), F_SETFL, O_NONBLOCK);
  const std::uint32_t in = connection.session().new_stream();
  Source source(typed.get(), in);
  Sink sink(showing.get(), begin(connection, "talk", {}, in));

  std::int64_t written = 0, read = 0, next_cut = 1 << 19;
  int cuts = 0;
  std::string buffer(64 << 10, '\0');
  const auto end = clock_.now() + seconds(60);
  while (!sink.done() && clock_.now() < end) {
    if (written < kBytes) {
      const auto bytes = pattern(
          written, static_cast<std::size_t>(std::min<std::int64_t>(30'000, kBytes - written)));
      const auto count = ::write(typing.get(), bytes.data(), bytes.size());
      if (count > 0) written += count;
    }
    if (written == kBytes) typing.reset();
    std::array<pollfd, 2> set = {source.wants(connection.session()),
                                 sink.wants(connection.session())};
    connection.turn(set, clock_.now() + Milliseconds(5));
    source.work(connection.session(), set[0].revents);
    sink.work(connection.session(), set[1].revents);
    while (true) {
      const auto count = ::read(shown.get(), buffer.data(), buffer.size());
      if (count <= 0) break;
      ASSERT_EQ(buffer.substr(0, static_cast<std::size_t>(count)),
                pattern(read, static_cast<std::size_t>(count)));
      read += count;
    }
    if (read < next_cut) continue;
    server_.cut();
    ++cuts;
    next_cut = read + (1 << 19);
  }
  EXPECT_TRUE(source.done());
  EXPECT_EQ(read, kBytes);
  EXPECT_EQ(sink.bytes(), kBytes);
  EXPECT_FALSE(sink.failure());
  EXPECT_GE(cuts, 4);
}

// covers: O5
TEST_F(ConnectionTest, WhoReadsSlowlyHoldsTheServerBack) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const auto [shown, showing] = pipe();
  Sink sink(showing.get(), begin(connection, "make", {{"bytes", std::int64_t{1} << 40}}));
  until_nothing_moves(connection, sink);
  EXPECT_LE(connection.session().stream_bytes_held(), kStreamBytesMax);
  EXPECT_LE(sink.bytes(), 64 << 10) << "what a pipe holds";
  EXPECT_TRUE(connection.ask({.op = "act", .args = {{"key", "e"}}, .mutating = true}, soon()))
      << "nobody else is held back";
}

TEST_F(ConnectionTest, WhatCameBeforeAStreamBrokeOffIsWrittenBeforeThatIsTold) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const auto [shown, showing] = pipe(O_NONBLOCK);
  Sink sink(showing.get(), begin(connection, "make", {{"bytes", std::int64_t{1} << 40}}));
  until_nothing_moves(connection, sink);
  connection.session().abandon({.code = FailureCode::kLost, .message = "its session was lost"});

  std::int64_t read = 0;
  std::string buffer(64 << 10, '\0');
  const auto read_what_is_there = [&, &from = shown] {
    for (;;) {
      const auto count = ::read(from.get(), buffer.data(), buffer.size());
      if (count <= 0) return;
      EXPECT_EQ(buffer.substr(0, static_cast<std::size_t>(count)),
                pattern(read, static_cast<std::size_t>(count)));
      read += count;
    }
  };
  const auto end = clock_.now() + seconds(20);
  while (!sink.failure() && clock_.now() < end) {
    sink.work(connection.session(), POLLOUT);
    if (!sink.failure()) read_what_is_there();
  }
  ASSERT_TRUE(sink.failure());
  EXPECT_TRUE(sink.done());
  read_what_is_there();
  EXPECT_EQ(read, sink.bytes());
  EXPECT_EQ(connection.session().stream_bytes_held(), 0);
}

TEST_F(ConnectionTest, WhatATurnHasBroughtIsWrittenBeforeTheNext) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  const auto [shown, showing] = pipe();
  Sink sink(showing.get(), begin(connection, "make", {{"bytes", 10}}));
  const auto end = clock_.now() + seconds(20);
  while (!sink.done() && clock_.now() < end) {
    connection.turn({}, end);
    sink.work(connection.session(), 0);
  }
  EXPECT_TRUE(sink.done());
  EXPECT_EQ(sink.bytes(), 10);
}

// covers: R4
TEST_F(ConnectionTest, WhatNobodyReadsIsStopped) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  auto [shown, showing] = pipe();
  ::signal(SIGPIPE, SIG_IGN);
  Sink sink(showing.get(), begin(connection, "make", {{"bytes", std::int64_t{1} << 40}}));
  shown.reset();
  const auto end = clock_.now() + seconds(20);
  while (!sink.done() && clock_.now() < end) {
    std::array<pollfd, 1> set = {sink.wants(connection.session())};
    connection.turn(set, end);
    sink.work(connection.session(), set[0].revents);
  }
  EXPECT_EQ(sink.problem(), EPIPE);
  EXPECT_TRUE(base::eventually([&] {
    connection.turn({}, clock_.now());
    std::size_t at_work = 1;
    server_.with([&](SessionHost&) { at_work = service_.at_work(); });
    return at_work == 0;
  }));
}

TEST_F(ConnectionTest, TellsNoticesOnce) {
  Connection connection(settings(), clock_);
  ASSERT_TRUE(connection.open(soon()));
  server_.with([&](SessionHost& host) {
    host.find(connection.welcome()->session)->tell("restored", "from yesterday");
  });
  int told = 0;
  const auto listen = [&] {
    connection.turn({}, clock_.now() + Milliseconds(10));
    for (const auto& event : connection.take_events())
      told += std::holds_alternative<Noticed>(event);
  };
  const auto end = clock_.now() + seconds(20);
  while (told == 0 && clock_.now() < end) listen();
  server_.cut();
  while (server_.links_made() < 2 && clock_.now() < end) listen();
  EXPECT_TRUE(connection.ask({.op = "act", .args = {{"key", "f"}}, .mutating = true}, soon()));
  listen();
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace wire
