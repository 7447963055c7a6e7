#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "libs/net/connection_options.h"
#include "libs/net/testing/full_listener.h"
#include "libs/net/testing/test_server.h"
#include "libs/net/testing/tls_server.h"
#include "libs/net/testing/transport_contract.h"

// What every transport with sockets promises beyond TransportContract, in the clear and over TLS:
// include this in one test file and instantiate both suites, and TransportContract with the kinds
// that `worlds_of` makes.
namespace net {

struct Maker {
  const char* name;
  std::unique_ptr<Transport> (*make)(ConnectionOptions);
  bool tls = false;
  bool joins_repeats = false;   // Headers of one name become one.
  bool sees_every_byte = true;  // Else a head or a chunk is seen only once it is whole.
};
inline void PrintTo(const Maker& maker, std::ostream* out) { *out << maker.name; }

struct SocketWorld final : World {
  explicit SocketWorld(const Maker& maker)
      : server_([](const Request&) { return answer(404); }, maker.tls ? &identity_ : nullptr),
        transport_(maker.make({.ca_bundle = identity_.certificate_pem(), .proxy = ""})) {}

  Transport& transport() override { return *transport_; }
  void close_transport() override { transport_.reset(); }
  std::string url() const override { return server_.url(); }
  std::string url_of_nobody() const override { return dead_url(); }
  void play(Handler handler) override { server_.play(std::move(handler)); }
  std::vector<Request> requests() const override { return server_.requests(); }
  bool wait_until(const std::function<bool()>& fact) const override {
    return server_.wait_until(fact);
  }

  const TlsIdentity identity_;
  TestServer server_;
  std::unique_ptr<Transport> transport_;
};

inline Kind world_of(const Maker& maker) {
  return {maker.name, [maker] { return std::make_unique<SocketWorld>(maker); },
          maker.joins_repeats};
}

class SocketContract : public testing::TestWithParam<Maker> {
 protected:
  static constexpr base::Milliseconds kLong{20'000};

  std::unique_ptr<Transport> made(ConnectionOptions options = {}) const {
    options.proxy = "";
    options.ca_bundle = identity_.certificate_pem();
    return GetParam().make(std::move(options));
  }
  Reply send(const Request& request) { return transport_->send(request, kLong, {}); }

  const TlsIdentity identity_;
  TestServer server_{[](const Request&) { return answer(200, "here"); },
                     GetParam().tls ? &identity_ : nullptr};
  std::unique_ptr<Transport> transport_ = made();
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SocketContract);

TEST_P(SocketContract, ReusesAConnectionUnlessAFreshOneIsAskedFor) {
  for (const char* method : {"POST", "GET", "DELETE"}) ASSERT_TRUE(send({method, server_.url()}));
  EXPECT_EQ(server_.connections(), 1u);
  ASSERT_TRUE(send({.method = "POST", .url = server_.url(), .fresh_connection = true}));
  EXPECT_EQ(server_.connections(), 2u);
}

TEST_P(SocketContract, RepeatsAGetWhoseReusedConnectionHadDied) {
  ASSERT_TRUE(send({"GET", server_.url()}));
  std::atomic<int> asked = 0;
  server_.play([&](const Request&) { return asked++ == 0 ? lost_answer() : answer(200, "again"); });
  const Reply reply = send({"GET", server_.url()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "again");
  EXPECT_EQ(asked, 2);
}

// A connection that the server closed while nobody used it is no reason for doubt.
TEST_P(SocketContract, AnIdleConnectionThatClosedCostsNoPost) {
  server_.play([](const Request&) {
    return Answer{.raw = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"};
  });
  for (int round = 0; round < 3; ++round) {
    Request request{"POST", server_.url()};
    request.body = "{}";
    const Reply reply = send(request);
    ASSERT_TRUE(reply) << reply.error().message;
    ASSERT_TRUE(server_.wait_until([&] { return server_.open_connections() == 0; }));
  }
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_P(SocketContract, KeepsNoMoreIdleConnectionsThanItsBound) {
  transport_ = made({.connections_kept = 2});
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(send({.method = "GET", .url = server_.url(), .fresh_connection = true}));
  EXPECT_TRUE(server_.wait_until([&] { return server_.open_connections() <= 2; }));
}

TEST_P(SocketContract, OpensNoMoreConnectionsThanItsBound) {
  transport_ = made({.connections_max = 3});
  server_.play([](const Request&) {
    Answer made = answer(200);
    made.delay = base::Milliseconds(5);
    return made;
  });
  std::latch all(20);
  std::atomic<int> right = 0;
  for (int i = 0; i < 20; ++i)
    transport_->start({"GET", server_.url()}, kLong, [&](Reply reply) {
      right += bool(reply);
      all.count_down();
    });
  all.wait();
  EXPECT_EQ(right, 20);
  EXPECT_LE(server_.connections(), 3u);
}

TEST_P(SocketContract, WhoWaitsForAConnectionIsUnderItsOwnTimeout) {
  transport_ = made({.connections_max = 1});
  server_.play([](const Request&) { return silent_answer(); });
  std::latch first(1);
  transport_->start({"GET", server_.url()}, kLong, [&](Reply) { first.count_down(); });
  ASSERT_TRUE(server_.wait_until([&] { return !server_.requests().empty(); }));
  const Reply reply = transport_->send({"POST", server_.url()}, base::Milliseconds(60), {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  EXPECT_FALSE(reply.error().sent);
  transport_.reset();
  first.wait();
}

TEST_P(SocketContract, AStoppedRequestLeavesNoConnectionBehind) {
  server_.play([](const Request&) { return silent_answer(); });
  std::stop_source stop;
  std::jthread stopper([&] {
    server_.wait_until([&] { return !server_.requests().empty(); });
    stop.request_stop();
  });
  EXPECT_FALSE(transport_->send({"GET", server_.url()}, kLong, stop.get_token()));
  EXPECT_TRUE(server_.wait_until([&] { return server_.open_connections() == 0; }));
}

TEST_P(SocketContract, IsWellAfterManyThatEndedAtAnyMoment) {
  constexpr int kCount = 200;
  std::atomic<int> asked = 0;
  server_.play([&](const Request&) {
    switch (asked++ % 4) {
      case 0:
        return lost_answer();
      case 1:
        return silent_answer();
      case 2:
        return Answer{.pieces = {"one", "two"}, .chunked = true, .delay = base::Milliseconds(3)};
      default:
        return answer(200, "here");
    }
  });
  std::latch all(kCount);
  for (int i = 0; i < kCount; ++i)
    transport_->start({i % 2 ? "GET" : "POST", server_.url()}, base::Milliseconds(i * 7 % 40),
                      [&](Reply) { all.count_down(); });
  for (int i = 0; i < kCount; ++i) {
    std::stop_source stop;
    std::jthread stopper([&, i] {
      const int before = asked;
      server_.wait_until([&] { return asked > before; }, base::Milliseconds(i % 7));
      stop.request_stop();
    });
    [[maybe_unused]] const Reply reply =
        transport_->send({"GET", server_.url()}, kLong, stop.get_token());
  }
  all.wait();
  server_.play([](const Request&) { return answer(200, "well"); });
  const Reply reply = send({"POST", server_.url()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "well");
}

TEST_P(SocketContract, NonsenseInsteadOfHttpIsAFailure) {
  for (const char* raw :
       {"nonsense\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\nhere",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsome\r\nhere\r\n0\r\n\r\n"}) {
    server_.play([=](const Request&) { return Answer{.raw = raw}; });
    const Reply reply = send({.method = "POST", .url = server_.url(), .fresh_connection = true});
    ASSERT_FALSE(reply) << raw;
    EXPECT_TRUE(reply.error().sent);
    EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST_P(SocketContract, NothingIsSentWhenNameOrTlsFails) {
  // A resolver may take its time; connecting has its own, shorter limit, and nothing waits for it.
  transport_ = made({.connect_timeout = base::Milliseconds(500)});
  const TestServer clear([](const Request&) { return answer(200); });
  for (const std::string& url :
       {std::string("http://no-such-host.invalid/"), "https" + clear.url().substr(4)}) {
    const Reply reply = send({"POST", url});
    ASSERT_FALSE(reply) << url;
    EXPECT_FALSE(reply.error().sent) << url << ": " << reply.error().message;
    EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST_P(SocketContract, NothingIsSentWhenNobodyAccepts) {
  const FullListener full;
  const Request request{"POST", (GetParam().tls ? "https" : "http") + full.url().substr(4)};
  const auto expect_unsent = [](const Reply& reply, base::ErrorCode code) {
    ASSERT_FALSE(reply);
    EXPECT_FALSE(reply.error().sent) << reply.error().message;
    EXPECT_EQ(reply.error().code, code) << reply.error().message;
  };
  expect_unsent(transport_->send(request, base::Milliseconds(60), {}),
                base::ErrorCode::kUnavailable);

  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  expect_unsent(transport_->send(request, kLong, stop.get_token()), base::ErrorCode::kCancelled);

  transport_ = made({.connect_timeout = base::Milliseconds(60)});
  const auto before = std::chrono::steady_clock::now();
  expect_unsent(send(request), base::ErrorCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - before, kLong / 2);
}

TEST_P(SocketContract, ASlowSinkLosesNoByte) {
  const std::string content = pattern(12u << 20);
  std::string got;
  const Sink sink{nullptr, [&](std::string_view bytes) {
                    EXPECT_LE(bytes.size(), 2u << 20);  // What is held back is bounded.
                    got += bytes;
                    return send({"GET", server_.url() + "/nested"}).ok();
                  }};
  server_.play([&](const Request& request) {
    if (request.url == "/nested") return answer(200);
    return Answer{.pieces = {content}, .chunked = true};
  });
  const Reply reply = transport_->stream({"GET", server_.url()}, sink, kLong, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(got == content);
}

TEST_P(SocketContract, AHeadWithoutEndIsCutOff) {
  server_.play([](const Request&) {
    Answer made{.raw = "HTTP/1.1 200 OK\r\n"};
    while (made.raw.size() < 4u << 20) made.raw += "X-Endless: " + std::string(1000, 'h') + "\r\n";
    return made;
  });
  const Reply reply = send({"GET", server_.url()});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code,
            GetParam().sees_every_byte ? base::ErrorCode::kInvalid : base::ErrorCode::kUnavailable);
}

TEST_P(SocketContract, AChunkWithoutEndIsCutOff) {
  server_.play([](const Request&) {
    return Answer{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffff00\r\n" +
                         std::string(4u << 20, 'c')};
  });
  const Reply reply = send({.method = "GET", .url = server_.url(), .body_bytes_max = 100'000});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code,
            GetParam().sees_every_byte ? base::ErrorCode::kInvalid : base::ErrorCode::kUnavailable);
}

TEST_P(SocketContract, TakesItsProxyFromTheEnvironment) {
  TestServer proxy([](const Request& request) { return answer(200, "via proxy: " + request.url); });
  setenv("http_proxy", proxy.url().c_str(), 1);
  const auto transport = GetParam().make({});
  const Reply reply = transport->send({"GET", "http://far.invalid/x"}, kLong, {});
  unsetenv("http_proxy");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "via proxy: http://far.invalid/x");
}

class TlsContract : public testing::TestWithParam<Maker> {
 protected:
  static Reply get(const std::string& url, ConnectionOptions options) {
    options.proxy = "";
    return GetParam()
        .make(std::move(options))
        ->send({"GET", url + "/"}, base::Milliseconds(20'000), {});
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TlsContract);

TEST_P(TlsContract, BelievesAnAuthorityFromMemory) {
  const TlsIdentity identity;
  const TlsServer server(identity);
  const Reply reply = get(server.url(), {.ca_bundle = identity.certificate_pem()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "anonymous");
}

TEST_P(TlsContract, SendsNothingToAServerThatNobodyVouchesFor) {
  const TlsIdentity identity, stranger;
  const TlsServer server(identity);
  for (const std::string& bundle : {std::string(), stranger.certificate_pem()}) {
    const Reply reply = get(server.url(), {.ca_bundle = bundle});
    ASSERT_FALSE(reply);
    EXPECT_FALSE(reply.error().sent) << reply.error().message;
  }
  EXPECT_EQ(server.requests(), 0);
}

TEST_P(TlsContract, SendsNothingToAServerOfAnotherName) {
  const TlsIdentity identity;
  const TlsServer server(identity);
  const std::string port = server.url().substr(server.url().rfind(':'));
  const Reply reply = get("https://localhost" + port, {.ca_bundle = identity.certificate_pem()});
  ASSERT_FALSE(reply);
  EXPECT_FALSE(reply.error().sent) << reply.error().message;
  EXPECT_EQ(server.requests(), 0);
}

TEST_P(TlsContract, ShowsAClientCertificateFromMemory) {
  const TlsIdentity identity, client;
  const TlsServer server(identity, &client);
  const Reply reply = get(server.url(), {.ca_bundle = identity.certificate_pem(),
                                         .client_certificate = client.certificate_pem(),
                                         .client_key = client.key_pem()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "known");
  EXPECT_FALSE(get(server.url(), {.ca_bundle = identity.certificate_pem()}));
  EXPECT_EQ(server.requests(), 1);
}

TEST_P(TlsContract, AsksForAndChecksAnotherNameThanTheUrls) {
  const TlsIdentity identity("DNS:api.internal");
  const TlsServer server(identity);
  ConnectionOptions options{.ca_bundle = identity.certificate_pem()};
  EXPECT_FALSE(get(server.url(), options));
  options.tls_server_name = "other.internal";
  EXPECT_FALSE(get(server.url(), options));
  EXPECT_EQ(server.requests(), 0);
  options.tls_server_name = "api.internal";
  const Reply reply = get(server.url(), options);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_NE(server.last_head().find("Host: " + server.url().substr(8) + "\r\n"), std::string::npos)
      << server.last_head();
  EXPECT_EQ(server.last_name(), "api.internal");
}

// A name may have several addresses, of which only one answers.
TEST_P(TlsContract, AsksForTheNameAtEachOfItsAddresses) {
  const TlsIdentity identity("DNS:localhost");
  const TlsServer server(identity);
  const std::string port = server.url().substr(server.url().rfind(':'));
  const Reply reply = get("https://localhost" + port, {.ca_bundle = identity.certificate_pem()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(server.last_name(), "localhost");
}

TEST_P(TlsContract, BelievesAnybodyOnlyWhenToldTo) {
  const TlsIdentity identity("DNS:api.internal");
  const TlsServer server(identity);
  const Reply reply = get(server.url(), {.verify_server = false});
  ASSERT_TRUE(reply) << reply.error().message;
}

}  // namespace net
