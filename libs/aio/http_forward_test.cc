#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "libs/aio/http_message.h"
#include "libs/aio/http_server.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"

namespace aio {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::dial;
using ::testing::HasSubstr;
using testing::hear_all;
using testing::hear_until;
using testing::kPatience;
using ::testing::Not;
using testing::say;
using testing::tell;

Task<> send_back(std::shared_ptr<HttpExchange> exchange) {
  std::string names;
  for (const auto& [name, value] : exchange->head().fields)
    names.append(name).append("=").append(value).append(";");
  EXPECT_TRUE(co_await exchange->begin(200, {{"X-Fields", names}}));
  char piece[4096];
  for (;;) {
    const auto got = co_await exchange->read(piece, sizeof piece);
    if (!got || *got == 0) break;
    if (!co_await exchange->write(std::string(piece, *got))) break;
  }
  (void)co_await exchange->finish();
}

// Interim replies without an end, until nobody reads them.
Task<> send_interim_replies(std::shared_ptr<HttpExchange> exchange, std::string reply) {
  const auto connection = exchange->connection().lock();
  std::string many;
  while (many.size() < 64u << 10) many += reply;
  while (co_await connection->write(many)) continue;
}
Task<> hint_and_reply(std::shared_ptr<HttpExchange> exchange, int hints) {
  const auto connection = exchange->connection().lock();
  for (int hint = 0; hint < hints; ++hint)
    EXPECT_TRUE(co_await connection->write("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"));
  EXPECT_TRUE(co_await exchange->reply({.status = 200, .body = "the reply"}));
}

// The server behind: it sends back what it gets, piece by piece; /hang replies never, /early
// without reading the body.
struct Behind {
  explicit Behind(Executor executor)
      : server(executor,
               [this](std::shared_ptr<HttpExchange> exchange) { return handle(*this, exchange); }) {
    port = *server.listen("127.0.0.1", 0);
  }
  static Task<> handle(Behind& behind, std::shared_ptr<HttpExchange> exchange) {
    const auto path = exchange->head().path();
    if (path == "/early") {
      EXPECT_TRUE(co_await exchange->reply({.status = 409, .body = "no need"}));
    } else if (path == "/drop") {
      exchange->abort();
    } else if (path == "/drop-late") {
      EXPECT_TRUE(co_await exchange->begin(200, {}));
      EXPECT_TRUE(co_await exchange->write("half"));
      exchange->abort();
    } else if (path == "/interim") {
      co_await send_interim_replies(exchange, "HTTP/1.1 100 C\r\n\r\n");
    } else if (path == "/interim-large") {
      co_await send_interim_replies(
          exchange, "HTTP/1.1 103 E\r\nX: " + std::string(8u << 10, 'x') + "\r\n\r\n");
    } else if (path == "/hints") {
      co_await hint_and_reply(exchange, kInterimRepliesMax);
    } else if (path == "/too-many-hints") {
      co_await hint_and_reply(exchange, kInterimRepliesMax + 1);
    } else if (path == "/hang") {
      co_await exchange->wait_for_disconnect();
      behind.left = true;
    } else {
      co_await send_back(exchange);
    }
  }
  bool left = false;
  int port = 0;
  HttpServer server;
};

struct Site {
  Site()
      : behind(loop.executor()),
        server(loop.executor(),
               [this](std::shared_ptr<HttpExchange> exchange) { return handle(*this, exchange); }) {
    port = *server.listen("127.0.0.1", 0);
    upstream_port = behind.port;
  }
  static Task<> handle(Site& site, std::shared_ptr<HttpExchange> exchange) {
    site.current = exchange;
    auto upstream = co_await dial(site.upstream_port);
    const auto forwarded = co_await exchange->forward(upstream);
    site.outcome = forwarded ? "done" : std::string(base::to_word(forwarded.error().code));
    if (!forwarded && forwarded.error().code == base::ErrorCode::kUnavailable)
      EXPECT_TRUE(co_await exchange->reply({.status = 502, .body = "nobody there"}));
  }
  void answers(const std::string& request, const std::string& expected) {
    testing::run(loop, testing::say_and_hear(port, request, expected));
  }

  Loop loop;
  Behind behind;
  HttpServer server;
  int port = 0, upstream_port = 0;
  std::string outcome;
  std::weak_ptr<HttpExchange> current;
};

Task<> forwards_fields(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer,
               "POST /x HTTP/1.1\r\nHost: box\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
               "TE: trailers\r\nX-Access-Token: t\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_THAT(
      co_await hear_until(peer, "0\r\n\r\n"),
      AllOf(HasSubstr("Host=box;"), HasSubstr("X-Access-Token=t;"), HasSubstr("body"),
            HasSubstr("Content-Length=4"), Not(HasSubstr("X-Mine")), Not(HasSubstr("trailers"))));
  co_await say(peer, "GET /y HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(co_await hear_all(peer), AllOf(HasSubstr("200 OK"), HasSubstr("<end>")));
}
TEST(Forward, CarriesWhatConcernsBothEnds) {
  Site site;
  testing::run(site.loop, forwards_fields(site));
  EXPECT_EQ(site.outcome, "done");
}

Task<> flushes_pieces(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer,
               "POST /x HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nping\r\n");
  EXPECT_THAT(co_await hear_until(peer, "ping\r\n"), HasSubstr("4\r\nping\r\n"))
      << "the first piece comes back before the second is sent";
  co_await say(peer, "4\r\npong\r\n0\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "0\r\n\r\n"), HasSubstr("4\r\npong\r\n"));
}
TEST(Forward, FlushesEachPieceBothWays) { tell(flushes_pieces); }

Task<> upload(std::shared_ptr<Stream> peer, std::size_t bytes) {
  const std::string piece(1u << 20, '\x01');
  EXPECT_TRUE(
      co_await say(peer, "POST /x HTTP/1.1\r\nHost: b\r\nConnection: close\r\nContent-Length: " +
                             std::to_string(bytes) + "\r\n\r\n"));
  for (std::size_t sent = 0; sent < bytes; sent += piece.size())
    EXPECT_TRUE((co_await peer->write(piece)).ok());
}
Task<> carries_much(Site& site) {
  constexpr std::size_t kBytes = 16u << 20;
  auto peer = co_await dial(site.port);
  TaskGroup group(site.loop.executor());
  group.spawn(upload(peer, kBytes));
  const std::string all = co_await hear_all(peer);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\x01'), static_cast<std::ptrdiff_t>(kBytes));
  co_await group.wait();
}
TEST(Forward, CarriesMoreThanItsBuffersHold) { tell(carries_much); }

TEST(Forward, LeavesTheReplyToItsCallerWhenUpstreamBreaks) {
  Site site;
  site.answers("GET /drop HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 502");
}
TEST(Forward, BreaksAReplyThatUpstreamBroke) {
  Site site;
  site.answers("GET /drop-late HTTP/1.1\r\n\r\n", "half\r\n<broken>");
}
TEST(Forward, PassesAReplyThatComesBeforeTheBody) {
  Site site;
  site.answers("POST /early HTTP/1.1\r\nContent-Length: 10000000\r\n\r\nstart", "no need");
}
TEST(Forward, PassesOverInterimReplies) {
  Site site;
  site.answers("GET /hints HTTP/1.1\r\nConnection: close\r\n\r\n", "the reply");
}
TEST(Forward, TakesMoreInterimRepliesThanItsBoundForABrokenUpstream) {
  for (const std::string path : {"/too-many-hints", "/interim", "/interim-large"}) {
    SCOPED_TRACE(path);
    Site site;
    site.answers("GET " + path + " HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 502");
    EXPECT_EQ(site.outcome, "Unavailable");
  }
}
TEST(Forward, PassesAHeadReply) {
  Site site;
  site.answers("HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n", "\r\n\r\n<end>");
}

Task<> until(bool& flag) {
  while (!flag) co_await sleep_for(milliseconds(1));
}
Task<> tells_upstream(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer, "GET /hang HTTP/1.1\r\nHost: b\r\n\r\n");
  while (site.current.expired()) co_await sleep_for(milliseconds(1));
  peer->close();
  EXPECT_EQ(co_await race(until(site.behind.left), sleep_for(kPatience)), 0);
}
TEST(Forward, TellsUpstreamThatThePeerLeft) {
  Site site;
  testing::run(site.loop, tells_upstream(site));
  EXPECT_EQ(site.outcome, "Cancelled");
}

Task<> cuts(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer,
               "POST /x HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nping\r\n");
  EXPECT_THAT(co_await hear_until(peer, "ping"), HasSubstr("200 OK"));
  site.current.lock()->abort();
  EXPECT_THAT(co_await hear_all(peer), HasSubstr("<broken>"));
}
TEST(Forward, CutsWhenTold) { tell(cuts); }

Task<> speak_other_protocol(std::shared_ptr<Stream> upstream) {
  EXPECT_THAT(co_await hear_until(upstream, "\r\n\r\n"),
              AllOf(HasSubstr("Connection: Upgrade"), HasSubstr("Upgrade: other")));
  co_await say(
      upstream,
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nfirst");
  EXPECT_EQ(co_await hear_until(upstream, "question"), "question");
  co_await say(upstream, "answer");
  EXPECT_EQ(co_await hear_all(upstream), "<end>");
  co_await say(upstream, "bye");
  upstream->close();
}

// Forwards the one request it gets to `upstream`.
Task<> forward_once(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<Stream> upstream) {
  EXPECT_TRUE(co_await exchange->forward(upstream));
}

Task<> upgrades(Executor executor) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto near = Stream::over(executor, base::Fd(ends[0]));
  auto far = Stream::over(executor, base::Fd(ends[1]));
  HttpServer server(executor, [near](std::shared_ptr<HttpExchange> exchange) {
    return forward_once(exchange, near);
  });
  TaskGroup group(executor);
  group.spawn(speak_other_protocol(far));
  auto peer = co_await dial(*server.listen("127.0.0.1", 0));
  co_await say(peer,
               "GET /ws HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "first"), HasSubstr("HTTP/1.1 101"));
  co_await say(peer, "question");
  EXPECT_EQ(co_await hear_until(peer, "answer"), "answer");
  peer->close_write();
  EXPECT_EQ(co_await hear_all(peer), "bye<end>");
  co_await group.wait();
}
TEST(Forward, CarriesAnUpgradedConnectionAsItIs) {
  Loop loop;
  testing::run(loop, upgrades(loop.executor()));
}

}  // namespace
}  // namespace aio
