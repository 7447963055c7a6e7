#include "libs/net/cpprest/cpprest_transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <list>
#include <mutex>
#include <thread>

#include "libs/base/strings.h"
#include "libs/net/testing/test_server.h"

namespace net {
namespace {

constexpr base::Milliseconds kLong{20'000};

Reply ask(Transport& transport, const Request& request) {
  return transport.send(request, kLong, {});
}

Answer raw(std::string bytes) { return Answer{.raw = std::move(bytes)}; }

// The library takes it for the last reply, and would take the last one for that to the next
// request.
TEST(Cpprest, AnInterimReplyEndsTheExchangeAndItsConnection) {
  TestServer server([](const Request&) {
    return Answer{.status = 103, .headers = {{"Content-Length", "0"}}, .chunked = true};
  });
  const auto transport = cpprest_transport({.proxy = ""});
  const Reply early = ask(*transport, {"POST", server.url()});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, base::ErrorCode::kUnavailable);
  EXPECT_TRUE(early.error().sent);
  server.play([](const Request&) { return answer(200, "last"); });
  const Reply next = ask(*transport, {"POST", server.url()});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->body, "last");
  EXPECT_EQ(server.connections(), 2u);
}

// The library leaves them unread, where the next reply should begin.
TEST(Cpprest, TrailersAreNotTakenForTheNextReply) {
  const auto transport = cpprest_transport({.proxy = ""});
  for (const std::string announced : {"Trailer: X-Trailer\r\n", ""}) {
    const TestServer server([=](const Request&) {
      Answer made = answer(200);
      made.headers.add("X-Smuggled", "1\r\n" + announced + "Transfer-Encoding: chunked");
      made.pieces = {"3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"};
      return made;
    });
    for (int round = 0; round < 3; ++round) {
      const Reply reply = ask(*transport, {"POST", server.url()});
      ASSERT_TRUE(reply) << reply.error().message;
      EXPECT_EQ(reply->body, "abc");
    }
  }
}

TEST(Cpprest, BoundsAChunkOfAStreamOverTls) {
  const TlsIdentity identity;
  const TestServer server(
      [](const Request&) {
        return raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n7fffff00\r\n" +
                   std::string(kBodyBytesMax + (1u << 20), 'c'));
      },
      &identity);
  const auto transport = cpprest_transport({.ca_bundle = identity.certificate_pem(), .proxy = ""});
  std::string got;
  const Sink sink{nullptr, [&](std::string_view bytes) {
                    got += bytes;
                    return true;
                  }};
  const Reply reply = transport->stream({"GET", server.url()}, sink, kLong, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kInvalid) << reply.error().message;
  EXPECT_EQ(got, "one");
}

TEST(Cpprest, ATlsFailureSaysWhy) {
  const TlsIdentity identity, stranger;
  const TestServer server([](const Request&) { return answer(200); }, &identity);
  const auto transport = cpprest_transport({.ca_bundle = stranger.certificate_pem(), .proxy = ""});
  const Reply reply = ask(*transport, {"GET", server.url()});
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("certificate"), std::string::npos) << reply.error().message;
}

TEST(Cpprest, RefusesWhatItCannotSend) {
  const auto expect_refused = [](ConnectionOptions options, const std::string& url) {
    const Reply reply = ask(*cpprest_transport(std::move(options)), {"POST", url});
    ASSERT_FALSE(reply) << url;
    EXPECT_EQ(reply.error().code, base::ErrorCode::kInvalid) << reply.error().message;
    EXPECT_FALSE(reply.error().sent);
    EXPECT_EQ(reply.error().message.find("c4n4ry"), std::string::npos) << reply.error().message;
  };
  const std::string url = dead_url();
  expect_refused({.proxy = ""}, "http://user:c4n4ry@host.test/");
  expect_refused({.proxy = ""}, "http://[::1]:80/");
  expect_refused({.proxy = ""}, "http://host.test/<>?signature=c4n4ry");
  expect_refused({.proxy = ""}, "http:///nowhere");
  expect_refused({.proxy = "http://user:c4n4ry@proxy.test"}, url);
  expect_refused({.proxy = "http://<c4n4ry>"}, url);
  expect_refused({.proxy = "https://proxy.test"}, url);
  expect_refused({.proxy = "socks5://proxy.test"}, url);
  expect_refused({.ca_bundle = "c4n4ry", .proxy = ""}, "https" + url.substr(4));
}

TEST(Cpprest, ClosingWaitsForNoName) {
  auto transport = cpprest_transport({.proxy = ""});
  std::atomic<bool> cancelled = false;
  transport->start({"GET", "http://no-such-host.invalid/"}, kLong,
                   [&](Reply reply) { cancelled = !reply; });
  transport.reset();
  EXPECT_TRUE(cancelled);
}

TEST(CpprestProxy, GetsTheWholeUrl) {
  TestServer proxy([](const Request& request) { return answer(200, request.url); });
  const auto transport = cpprest_transport({.proxy = proxy.url().substr(7)});
  const Reply reply = ask(*transport, {"POST", "http://far.invalid/x?y"});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "http://far.invalid/x?y");
}

TEST(CpprestProxy, NothingIsSentWhenItRefusesATunnel) {
  TestServer proxy([](const Request&) { return answer(403); });
  const auto transport = cpprest_transport({.proxy = proxy.url()});
  const Reply reply = ask(*transport, {"POST", "https://far.invalid/"});
  ASSERT_FALSE(reply);
  EXPECT_FALSE(reply.error().sent) << reply.error().message;
  EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  ASSERT_EQ(proxy.requests().size(), 1u);
  EXPECT_EQ(proxy.requests()[0].method, "CONNECT");
}

// Answers each CONNECT and carries bytes to one port of this machine.
class Tunnel {
 public:
  explicit Tunnel(int port) : to_(loopback(port)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any = loopback(0);
    socklen_t size = sizeof any;
    auto* address = reinterpret_cast<sockaddr*>(&any);
    EXPECT_EQ(bind(listener_.get(), address, size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    getsockname(listener_.get(), address, &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    accepting_ = std::jthread([this] { accept_all(); });
  }
  ~Tunnel() {
    shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    for (const base::Fd& fd : open_) shutdown(fd.get(), SHUT_RDWR);
    carrying_.clear();
  }
  const std::string& url() const { return url_; }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }

  void accept_all() {
    for (;;) {
      base::Fd near(accept(listener_.get(), nullptr, nullptr));
      if (!near) return;
      std::string head;
      char byte;
      while (!head.ends_with("\r\n\r\n") && recv(near.get(), &byte, 1, 0) == 1) head += byte;
      base::Fd far(socket(AF_INET, SOCK_STREAM, 0));
      EXPECT_EQ(connect(far.get(), reinterpret_cast<const sockaddr*>(&to_), sizeof to_), 0);
      const std::string_view granted = "HTTP/1.1 200 Granted\r\n\r\n";
      send(near.get(), granted.data(), granted.size(), MSG_NOSIGNAL);
      carrying_.emplace_back(carry, near.get(), far.get());
      carrying_.emplace_back(carry, far.get(), near.get());
      open_.push_back(std::move(near));
      open_.push_back(std::move(far));
    }
  }

  static void carry(int from, int to) {
    char bytes[16 << 10];
    for (ssize_t got; (got = recv(from, bytes, sizeof bytes, 0)) > 0;)
      send(to, bytes, std::size_t(got), MSG_NOSIGNAL);
    shutdown(to, SHUT_RDWR);
  }

  const sockaddr_in to_;
  const base::Fd listener_;
  std::string url_;
  std::list<base::Fd> open_;
  std::list<std::jthread> carrying_;
  std::jthread accepting_;
};

TEST(CpprestProxy, TunnelsTls) {
  const TlsIdentity identity("DNS:api.internal");
  TestServer server([](const Request& request) { return answer(200, request.method); }, &identity);
  const Tunnel tunnel(server.port());
  const auto transport = cpprest_transport({.ca_bundle = identity.certificate_pem(),
                                            .tls_server_name = "api.internal",
                                            .proxy = tunnel.url()});
  for (const char* method : {"POST", "GET", "POST"}) {
    const Reply reply = ask(*transport, {method, server.url()});
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->body, method);
  }
  server.play([](const Request&) { return lost_answer(); });
  const Reply lost = ask(*transport, {"POST", server.url()});
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().sent);
  EXPECT_EQ(server.requests().size(), 4u);
}

}  // namespace
}  // namespace net
