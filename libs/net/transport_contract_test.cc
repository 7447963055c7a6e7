#include "libs/net/testing/transport_contract.h"

#include <cstdlib>

#include "libs/net/curl_transport.h"
#include "libs/net/testing/fake_transport.h"
#include "libs/net/testing/test_server.h"

namespace net {
namespace {

struct CurlWorld final : World {
  Transport& transport() override { return *transport_; }
  void close_transport() override { transport_.reset(); }
  std::string url() const override { return server_.url(); }
  std::string url_of_nobody() const override { return dead_url(); }
  void play(Handler handler) override { server_.play(std::move(handler)); }
  std::vector<Request> requests() const override { return server_.requests(); }
  bool wait_until(const std::function<bool()>& fact) const override {
    return server_.wait_until(fact);
  }

  TestServer server_{[](const Request&) { return answer(404); }};
  std::unique_ptr<Transport> transport_ = curl_transport({.proxy = ""});
};

struct FakeWorld final : World {
  Transport& transport() override { return *transport_; }
  void close_transport() override { transport_.reset(); }
  std::string url() const override { return "http://fake.test"; }
  std::string url_of_nobody() const override { return "http://nobody.test"; }
  void play(Handler handler) override {
    transport_->play([this, handler](const Request& request) {
      return request.url.starts_with(url_of_nobody()) ? refused_connection() : handler(request);
    });
  }
  std::vector<Request> requests() const override { return transport_->requests(); }
  bool wait_until(const std::function<bool()>& fact) const override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!fact() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return fact();
  }

  std::unique_ptr<FakeTransport> transport_ =
      std::make_unique<FakeTransport>([](const Request&) { return answer(404); });
};

INSTANTIATE_TEST_SUITE_P(All, TransportContract,
                         testing::Values(Kind{"Curl", [] { return std::make_unique<CurlWorld>(); }},
                                         Kind{"Fake",
                                              [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& info) { return info.param.name; });

// --- What only a transport with sockets can show.

class Curl : public testing::Test {
 protected:
  Reply send(const Request& request) {
    return transport_->send(request, base::Milliseconds(20'000), {});
  }

  TestServer server_{[](const Request&) { return answer(200, "here"); }};
  std::unique_ptr<Transport> transport_ = curl_transport({.proxy = ""});
};

TEST_F(Curl, ReusesAConnectionUnlessAFreshOneIsAskedFor) {
  ASSERT_TRUE(send({"POST", server_.url()}));
  ASSERT_TRUE(send({"POST", server_.url()}));
  EXPECT_EQ(server_.connections(), 1u);
  ASSERT_TRUE(send({.method = "POST", .url = server_.url(), .fresh_connection = true}));
  EXPECT_EQ(server_.connections(), 2u);
}

TEST_F(Curl, RepeatsAGetWhoseReusedConnectionHadDied) {
  ASSERT_TRUE(send({"GET", server_.url()}));
  std::atomic<int> asked = 0;
  server_.play([&](const Request&) { return asked++ == 0 ? lost_answer() : answer(200, "again"); });
  const Reply reply = send({"GET", server_.url()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "again");
  EXPECT_EQ(asked, 2);
}

TEST_F(Curl, KeepsNoMoreIdleConnectionsThanItsBound) {
  transport_ = curl_transport({.proxy = "", .connections_kept = 2});
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(send({.method = "GET", .url = server_.url(), .fresh_connection = true}));
  EXPECT_TRUE(server_.wait_until([&] { return server_.open_connections() <= 2; }));
}

TEST_F(Curl, OpensNoMoreConnectionsThanItsBound) {
  transport_ = curl_transport({.proxy = "", .connections_max = 3});
  server_.play([](const Request&) {
    Answer made = answer(200);
    made.delay = base::Milliseconds(5);
    return made;
  });
  std::latch all(20);
  std::atomic<int> right = 0;
  for (int i = 0; i < 20; ++i)
    transport_->start({"GET", server_.url()}, base::Milliseconds(20'000), [&](Reply reply) {
      right += bool(reply);
      all.count_down();
    });
  all.wait();
  EXPECT_EQ(right, 20);
  EXPECT_LE(server_.connections(), 3u);
}

TEST_F(Curl, AStoppedRequestLeavesNoConnectionBehind) {
  server_.play([](const Request&) { return silent_answer(); });
  std::stop_source stop;
  std::jthread stopper([&] {
    server_.wait_until([&] { return !server_.requests().empty(); });
    stop.request_stop();
  });
  EXPECT_FALSE(
      transport_->send({"GET", server_.url()}, base::Milliseconds(20'000), stop.get_token()));
  EXPECT_TRUE(server_.wait_until([&] { return server_.open_connections() == 0; }));
}

TEST_F(Curl, SkipsInterimRepliesAndTrailers) {
  server_.play([](const Request&) {
    return Answer{.raw =
                      "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"};
  });
  const Reply reply = send({"GET", server_.url()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "abc");
  EXPECT_EQ(reply->headers.find("X-Early"), std::nullopt);
  EXPECT_EQ(reply->headers.find("X-Trailer"), std::nullopt);
}

TEST_F(Curl, NonsenseInsteadOfHttpIsAFailure) {
  for (const char* raw :
       {"nonsense\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le"}) {
    server_.play([=](const Request&) { return Answer{.raw = raw}; });
    const Reply reply = send({.method = "POST", .url = server_.url(), .fresh_connection = true});
    ASSERT_FALSE(reply) << raw;
    EXPECT_TRUE(reply.error().sent);
    EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST_F(Curl, NothingIsSentWhenNameOrTlsFails) {
  // A resolver may take its time; connecting has its own, shorter limit, and nothing waits for it.
  transport_ = curl_transport({.connect_timeout = base::Milliseconds(500), .proxy = ""});
  const std::string tls = "https" + server_.url().substr(4);
  for (const std::string& url : {std::string("http://no-such-host.invalid/"), tls}) {
    const Reply reply = send({"POST", url});
    ASSERT_FALSE(reply) << url;
    EXPECT_FALSE(reply.error().sent) << url << ": " << reply.error().message;
    EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST_F(Curl, ASlowSinkLosesNoByte) {
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
  const Reply reply =
      transport_->stream({"GET", server_.url()}, sink, base::Milliseconds(20'000), {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(got == content);
}

TEST(CurlProxy, ComesFromTheEnvironment) {
  TestServer proxy([](const Request& request) { return answer(200, "via proxy: " + request.url); });
  setenv("http_proxy", proxy.url().c_str(), 1);
  const auto transport = curl_transport();
  const Reply reply =
      transport->send({"GET", "http://far.invalid/x"}, base::Milliseconds(20'000), {});
  unsetenv("http_proxy");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "via proxy: http://far.invalid/x");
}

}  // namespace
}  // namespace net
