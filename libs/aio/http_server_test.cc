#include "libs/aio/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/http_client.h"
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
using testing::say;
using testing::tell;

// What the test's handler does, by path; `seen` is what it found out.
struct Site {
  explicit Site(HttpLimits limits = {}) : server(loop.executor(), handler(), limits) {
    port = *server.listen("127.0.0.1", 0);
  }
  ~Site() { server.stop(); }
  void answers(const std::string& text, const std::string& expected) {
    testing::run(loop, testing::say_and_hear(port, text, expected));
  }

  HttpServer::Handler handler() {
    return [this](std::shared_ptr<HttpExchange> exchange) { return handle(*this, exchange); };
  }
  static Task<> handle(Site& site, std::shared_ptr<HttpExchange> exchange);

  Loop loop;
  int port = 0;
  std::vector<std::string> seen;
  HttpServer server;
};

Task<> echo(HttpExchange& exchange) {
  const auto body = co_await exchange.read_all(1u << 20);
  if (!body) {
    EXPECT_TRUE(co_await exchange.reply({.status = 413, .body = body.error().message}));
    co_return;
  }
  EXPECT_TRUE(
      co_await exchange.reply({.fields = {{"X-Path", exchange.head().path()}}, .body = *body}));
}

Task<> count_to_three(HttpExchange& exchange) {
  EXPECT_TRUE(co_await exchange.begin(200, {{"Content-Type", "text/plain"}}));
  for (const char* word : {"one", "two", "three"}) EXPECT_TRUE(co_await exchange.write(word));
  EXPECT_TRUE(co_await exchange.finish());
}

Task<> Site::handle(Site& site, std::shared_ptr<HttpExchange> exchange) {
  const std::string path = exchange->head().path();
  if (path == "/count") {
    co_await count_to_three(*exchange);
  } else if (path == "/silent") {
    site.seen.push_back("silent");
  } else if (path == "/lost") {
    exchange->abort();
  } else if (path == "/broken") {
    EXPECT_TRUE(co_await exchange->begin(200, {}));
    EXPECT_TRUE(co_await exchange->write("half"));
  } else if (path == "/refuse") {
    EXPECT_TRUE(co_await exchange->reply({.status = 403}));
  } else if (path == "/watch") {
    EXPECT_TRUE(co_await exchange->begin(200, {}));
    EXPECT_TRUE(co_await exchange->write("watching"));
    co_await exchange->wait_for_disconnect();
    site.seen.push_back("left");
  } else {
    co_await echo(*exchange);
  }
}

Task<> keeps_alive(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer, "POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(co_await hear_until(peer, "hello"),
              AllOf(HasSubstr("200 OK"), HasSubstr("X-Path: /a b"), HasSubstr("Date: ")));
  co_await say(
      peer,
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde"
      "\r\n0\r\n\r\nGET /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(co_await hear_all(peer), AllOf(HasSubstr("abcde"), HasSubstr("X-Path: /d")));
}
TEST(HttpServer, KeepsAConnectionForTheNextRequest) { tell(keeps_alive); }

Task<> replies_chunked(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer, "GET /count HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "0\r\n\r\n"),
              AllOf(HasSubstr("Transfer-Encoding: chunked"),
                    HasSubstr("\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n")));
  auto old = co_await dial(site.port);
  co_await say(old, "GET /count HTTP/1.0\r\n\r\n");
  EXPECT_THAT(co_await hear_all(old), HasSubstr("\r\n\r\nonetwothree<end>"));
}
TEST(HttpServer, RepliesInChunks) { tell(replies_chunked); }

Task<> continues_when_read(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer,
               "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "\r\n\r\n"), HasSubstr("HTTP/1.1 100 Continue"));
  co_await say(peer, "ok");
  EXPECT_THAT(co_await hear_until(peer, "\r\n\r\nok"), HasSubstr("200 OK"));
  auto refused = co_await dial(site.port);
  co_await say(
      refused,
      "POST /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(co_await hear_all(refused),
              AllOf(HasSubstr("HTTP/1.1 403"), HasSubstr("Connection: close")));
}
TEST(HttpServer, AsksForABodyOnlyWhenItIsRead) { tell(continues_when_read); }

TEST(HttpServer, RefusesAHeadThatIsTooLarge) {
  Site site({.head_bytes_max = 1024});
  site.answers("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n", "HTTP/1.1 431");
}
TEST(HttpServer, WaitsForNoChunkThatIsLongerThanItTakes) {
  for (const char* size : {"100001", "FFFFFFFFFFFFFFFF", "10000000000000000",
                           "ffffffffffffffffffffffff", "8000000000000000", "+1", "-1", "x"}) {
    Site site;
    SCOPED_TRACE(size);
    site.answers(std::string("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n") +
                     size + "\r\nabc",
                 "HTTP/1.1 413");
  }
  Site site;
  site.answers(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
      "FFFFF\r\n",
      "the body is larger than 1048576 bytes");
}
TEST(HttpServer, RefusesWhatIsNotHttp) {
  Site site;
  site.answers("once upon a time\r\n\r\n", "HTTP/1.1 400");
}
TEST(HttpServer, RefusesAHeadThatTakesTooLong) {
  Site site({.head_timeout = milliseconds(20)});
  site.answers("GET / HTTP/1.1\r\nHo", "HTTP/1.1 408");
}
TEST(HttpServer, ClosesAConnectionThatIsIdleTooLong) {
  Site site({.idle_timeout = milliseconds(20)});
  site.answers("", "<end>");
  site.answers("GET / HTTP/1.1\r\n\r\n", "<end>");
}
TEST(HttpServer, ClosesAConnectionThatNeverSaysAnything) {
  Site site({.head_timeout = milliseconds(20)});
  site.answers("", "<end>");
}
TEST(HttpServer, RefusesABodyLargerThanItsHandlerWants) {
  Site site;
  site.answers("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n", "HTTP/1.1 413");
}
TEST(HttpServer, AnswersForAHandlerThatDoesNot) {
  Site site;
  site.answers("GET /silent HTTP/1.0\r\n\r\n", "HTTP/1.1 500");
  EXPECT_EQ(site.seen, std::vector<std::string>{"silent"});
}
TEST(HttpServer, BreaksTheConnectionWhenTold) {
  Site site;
  site.answers("GET /lost HTTP/1.1\r\n\r\n", "<broken>");
}
TEST(HttpServer, BreaksAReplyThatIsNotWhole) {
  Site site;
  site.answers("GET /broken HTTP/1.1\r\n\r\n", "half\r\n<broken>");
}

Task<std::shared_ptr<Stream>> watch(Site& site) {
  auto peer = co_await dial(site.port);
  co_await say(peer, "GET /watch HTTP/1.1\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "watching"), HasSubstr("watching"));
  co_return peer;
}

Task<> bounds_connections(Site& site) {
  auto first = co_await watch(site);
  auto second = co_await watch(site);
  auto third = co_await dial(site.port);
  EXPECT_THAT(co_await hear_all(third), HasSubstr("HTTP/1.1 503"));
  first->close();
  for (;;) {  // A place is free again once the server has seen that the first left.
    auto next = co_await dial(site.port);
    co_await say(next, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    if ((co_await hear_all(next)).find("200 OK") != std::string::npos) break;
  }
}
TEST(HttpServer, BoundsItsConnections) {
  tell(bounds_connections, HttpLimits{.connections_max = 2});
}

Task<> until_seen(Site& site) {
  while (site.seen.empty()) co_await sleep_for(milliseconds(1));
}
Task<> sees_disconnect(Site& site) {
  auto peer = co_await watch(site);
  peer->close();
  EXPECT_EQ(co_await race(until_seen(site), sleep_for(kPatience)), 0);
  EXPECT_EQ(site.seen, std::vector<std::string>{"left"});
}
TEST(HttpServer, SeesThatThePeerLeft) { tell(sees_disconnect); }

Task<> stops(Site& site) {
  auto peer = co_await watch(site);
  site.server.stop();
  EXPECT_THAT(co_await hear_all(peer), HasSubstr("<broken>"));
  EXPECT_EQ(co_await dial(site.port), nullptr);
}
TEST(HttpServer, ClosesAllWhenStopped) { tell(stops); }

Task<> client_talks(Site& site) {
  auto peer = co_await dial(site.port);
  HttpRequest question{.method = "POST", .target = "/x", .body = "ping"};
  const auto reply = co_await exchange(peer, question, kPatience);
  EXPECT_TRUE(reply);
  if (reply) EXPECT_EQ(reply->body, "ping");
  auto again = co_await dial(site.port);
  HttpRequest count{.target = "/count"};
  const auto counted = co_await exchange(again, count, kPatience);
  if (counted) EXPECT_EQ(counted->body, "onetwothree");
  auto slow = co_await dial(site.port);
  HttpRequest watch{.target = "/watch"};
  EXPECT_FALSE(co_await exchange(slow, watch, milliseconds(20)));
}
TEST(HttpClient, AsksOnceAndReadsTheWholeReply) { tell(client_talks); }

TEST(HttpHead, DecodesPathAndQuery) {
  const HttpHead head{
      .method = "GET", .target = "/a%2Fb?x=1%2B1+2&empty&x=3&=no", .fields = {{"Host", "h"}}};
  EXPECT_EQ(head.path(), "/a/b");
  EXPECT_EQ(head.query("x"), "1+1 2");
  EXPECT_EQ(head.query("empty"), "");
  EXPECT_EQ(head.query("y"), std::nullopt);
  EXPECT_EQ(head.field("hOST"), "h");
}

}  // namespace
}  // namespace aio
