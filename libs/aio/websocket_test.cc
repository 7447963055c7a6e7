#include "libs/aio/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"

namespace aio {
namespace {

using testing::dial;
using ::testing::HasSubstr;
using testing::hear_all;
using testing::hear_until;
using testing::kPatience;
using testing::say;
using testing::tell;

const WebSocketOptions kOptions{.subprotocol = "echo.1", .message_bytes_max = 100'000};

// A server that sends each message back; what came of its connection is kept.
struct Site {
  Site() : server(loop.executor(), [this](auto exchange) { return serve(*this, exchange); }) {
    port = *server.listen("127.0.0.1", 0);
  }
  static Task<> serve(Site& site, std::shared_ptr<HttpExchange> exchange) {
    auto socket = co_await WebSocket::accept(exchange, kOptions);
    if (!socket) {
      site.ended = socket.error();
      co_return;
    }
    for (;;) {
      auto message = co_await (*socket)->read();
      if (!message) {
        site.ended = message.error();
        co_return;
      }
      const auto sent = *message == "thrice"
                            ? co_await (*socket)->write_all({"one", "two", "three"})
                            : co_await (*socket)->write(*std::move(message));
      if (!sent) {
        site.ended = sent.error();
        co_return;
      }
    }
  }
  Task<base::Result<std::shared_ptr<WebSocket>>> open(WebSocketOptions options = kOptions) {
    co_return co_await WebSocket::open(co_await dial(port), "localhost", "/v1/session",
                                       {{"X-Token", "t"}}, options);
  }
  Task<> until_ended() {
    for (int i = 0; i < 6000 && !ended; ++i) co_await sleep_for(base::Milliseconds(10));
  }

  Loop loop;
  HttpServer server;
  int port = 0;
  std::optional<base::Error> ended;
};

// How many packets with bytes have come over a connection.
int packets_of(int connection) {
  tcp_info known{};
  socklen_t size = sizeof known;
  EXPECT_EQ(::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &known, &size), 0);
  return static_cast<int>(known.tcpi_data_segs_in);
}

Task<std::string> heard(WebSocket& socket) {
  const auto message = co_await within(socket.read(), kPatience);
  if (!message) co_return "<nothing>";
  co_return *message ? **message : message->error().message;
}

Task<> send_together(Site& site) {
  const auto stream = co_await dial(site.port);
  const int connection = stream->read_descriptor();  // Which the WebSocket takes over.
  const auto socket = co_await WebSocket::open(stream, "localhost", "/v1/session", {}, kOptions);
  EXPECT_TRUE(socket);
  if (!socket) co_return;
  int packets = 0;  // More where the server is held up for so long that the kernel waits no more.
  for (int left = 20; left > 0 && packets != 1; --left) {
    const int before = packets_of(connection);
    EXPECT_TRUE(co_await (*socket)->write("thrice"));
    for (const char* wanted : {"one", "two", "three"}) EXPECT_EQ(co_await heard(**socket), wanted);
    packets = packets_of(connection) - before;
  }
  EXPECT_EQ(packets, 1);
  EXPECT_TRUE(co_await (*socket)->write("alone"));  // It waits for no other.
  EXPECT_EQ(co_await heard(**socket), "alone");
}

Task<> carry_messages(Site& site) {
  const auto socket = co_await site.open();
  EXPECT_TRUE(socket);
  if (!socket) co_return;
  for (const std::size_t size : {0, 1, 125, 126, 65'535, 65'536, 100'000}) {
    std::string message(size, '\0');
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i * 7);
    EXPECT_TRUE(co_await (*socket)->write(message));
    const auto back = co_await within((*socket)->read(), kPatience);
    EXPECT_TRUE(back && *back && **back == message) << size;
  }
}
TEST(WebSocket, CarriesMessagesOfEverySize) { tell(carry_messages); }

Task<> send_too_much(Site& site) {
  const auto socket = co_await site.open();
  (void)co_await (*socket)->write(std::string(100'001, 'x'));  // It may be cut off on the way.
  const auto back = co_await within((*socket)->read(), kPatience);
  EXPECT_TRUE(back && !*back);
  co_await site.until_ended();
  EXPECT_EQ(site.ended->code, base::ErrorCode::kInvalid) << site.ended->message;
}
TEST(WebSocket, SendsSmallMessagesTogether) { tell(send_together); }

TEST(WebSocket, RefusesAMessageThatIsTooLong) { tell(send_too_much); }

Task<> speak_another(Site& site) {
  WebSocketOptions other = kOptions;
  other.subprotocol = "other.1";
  const auto socket = co_await site.open(other);
  EXPECT_FALSE(socket);
  EXPECT_EQ(site.ended->code, base::ErrorCode::kInvalid);
}
TEST(WebSocket, RefusesAnotherSubprotocol) { tell(speak_another); }

Task<> refuse(std::shared_ptr<HttpExchange> exchange, int status) {
  co_await exchange->reply({.status = status});
}
Task<> be_refused(Site& site) {
  for (const auto& [status, code] : {std::pair(401, base::ErrorCode::kDenied),
                                     {403, base::ErrorCode::kDenied},
                                     {502, base::ErrorCode::kInvalid}}) {
    HttpServer router(site.loop.executor(),
                      [status](auto exchange) { return refuse(std::move(exchange), status); });
    const auto socket = co_await WebSocket::open(co_await dial(*router.listen("127.0.0.1", 0)),
                                                 "localhost", "/", {}, kOptions);
    EXPECT_FALSE(socket);
    if (socket) continue;
    EXPECT_EQ(socket.error().code, code) << status;
    EXPECT_THAT(socket.error().message, HasSubstr("answered " + std::to_string(status)));
  }
}
TEST(WebSocket, SaysHowItWasRefused) { tell(be_refused); }

Task<> ask_for_a_page(Site& site) {
  const auto peer = co_await dial(site.port);
  co_await say(peer, "GET /v1/session HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "is spoken here"), HasSubstr("HTTP/1.1 426 "));
}
TEST(WebSocket, TellsWhoAsksForSomethingElse) { tell(ask_for_a_page); }

std::string upgrade(const std::string& more) {
  return "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
         "Sec-WebSocket-Protocol: other.1, echo.1\r\n" +
         more + "\r\n";
}

Task<> shake_hands(Site& site) {
  const auto peer = co_await dial(site.port);
  co_await say(peer, upgrade("X-Large: " + std::string(8'000, 'x') + "\r\n"));
  const std::string answer = co_await hear_until(peer, "\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 101 "));
  EXPECT_THAT(answer, HasSubstr("Sec-WebSocket-Protocol: echo.1\r\n"));
  // A text message of one letter, masked with zeros (RFC 6455 §5.2).
  co_await say(peer, std::string("\x81\x81\0\0\0\0x", 7));
  co_await site.until_ended();
  EXPECT_EQ(site.ended->message, "WebSocket read: a text message");
}
TEST(WebSocket, TakesFromSeveralSubprotocolsAndRefusesText) { tell(shake_hands); }

Task<> break_the_rules(Site& site) {
  const auto peer = co_await dial(site.port);
  co_await say(peer, upgrade(""));
  co_await hear_until(peer, "\r\n\r\n");
  co_await say(peer, std::string("\x82\x01x", 3));  // Not masked.
  // A close for a protocol error (RFC 6455 §7.4.1: 1002); who reads it hangs up.
  EXPECT_THAT(co_await hear_until(peer, "\x03\xea"), HasSubstr("\x03\xea"));
  peer->close();
  co_await site.until_ended();
  EXPECT_TRUE(site.ended);
  if (site.ended) EXPECT_EQ(site.ended->code, base::ErrorCode::kInvalid) << site.ended->message;
}
TEST(WebSocket, EndsWithWhoBreaksTheRules) { tell(break_the_rules); }

Task<> do_not_wait(Site& site) {
  const auto peer = co_await dial(site.port);
  co_await say(peer, upgrade("") + std::string("\x82\x81\0\0\0\0x", 7));
  co_await site.until_ended();
  EXPECT_EQ(site.ended->code, base::ErrorCode::kInvalid) << site.ended->message;
  EXPECT_THAT(co_await hear_all(peer), ::testing::Not(HasSubstr("101")));
}
TEST(WebSocket, RefusesWhoDoesNotWaitForItsAnswer) { tell(do_not_wait); }

Task<> hang_up(Site& site) {
  {
    const auto socket = co_await site.open();
    EXPECT_TRUE(socket);
  }
  co_await site.until_ended();
  EXPECT_EQ(site.ended->code, base::ErrorCode::kUnavailable) << site.ended->message;
}
TEST(WebSocket, HearsThatTheOtherSideIsGone) { tell(hang_up); }

Task<> reset_soon(std::shared_ptr<WebSocket> socket) {
  co_await sleep_for(base::Milliseconds(1));
  socket->reset();
}
Task<> reset_in_between(Site& site) {
  const auto socket = *co_await site.open();
  std::optional<base::Result<std::string>> read;
  co_await both(keep_result(socket->read(), read), reset_soon(socket));
  EXPECT_EQ((*read).error().code, base::ErrorCode::kUnavailable);
  const auto sent = co_await socket->write("x");
  EXPECT_EQ(sent.error().code, base::ErrorCode::kUnavailable);
}
TEST(WebSocket, WakesItsReaderWhenItIsReset) { tell(reset_in_between); }

}  // namespace
}  // namespace aio
