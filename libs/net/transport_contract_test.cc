#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>

#include "libs/net/curl_transport.h"
#include "libs/net/testing/fake_transport.h"
#include "libs/net/testing/socket_contract.h"

namespace net {
namespace {

const Maker kCurl{"Curl", curl_transport};
const Maker kCurlTls{"CurlTls", curl_transport, true};

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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fact() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return fact();
  }

  std::unique_ptr<FakeTransport> transport_ =
      std::make_unique<FakeTransport>([](const Request&) { return answer(404); });
};

INSTANTIATE_TEST_SUITE_P(All, TransportContract,
                         testing::Values(world_of(kCurl), world_of(kCurlTls),
                                         Kind{"Fake",
                                              [] { return std::make_unique<FakeWorld>(); }}),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, SocketContract, testing::Values(kCurl, kCurlTls),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, TlsContract, testing::Values(kCurlTls),
                         [](const auto& info) { return info.param.name; });

TEST(Curl, SkipsInterimRepliesAndTrailers) {
  const TestServer server([](const Request&) {
    return Answer{.raw =
                      "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"};
  });
  const Reply reply =
      curl_transport({.proxy = ""})->send({"GET", server.url()}, base::Milliseconds(20'000), {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "abc");
  EXPECT_EQ(reply->headers.find("X-Early"), std::nullopt);
  EXPECT_EQ(reply->headers.find("X-Trailer"), std::nullopt);
}

TEST(Curl, BoundsInterimReplies) {
  const TestServer server([](const Request&) {
    Answer endless;
    while (endless.raw.size() < 4u << 20) endless.raw += "HTTP/1.1 100 Continue\r\n\r\n";
    return endless;
  });
  const Reply reply =
      curl_transport({.proxy = ""})->send({"GET", server.url()}, base::Milliseconds(20'000), {});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, testing::HasSubstr("the reply's head is larger than"));
}

// How long the kernel waits for a word of the peer, of our ends of connections to that port.
std::vector<unsigned> patience_ms(int port) {
  std::vector<unsigned> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    unsigned patience = 0;
    size = sizeof patience;
    getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, &size);
    found.push_back(patience);
  }
  return found;
}

TEST(Curl, DoesNotWaitLongForAPeerThatVanished) {
  const TestServer server([](const Request&) { return answer(200, "here"); });
  const auto transport = curl_transport({.proxy = ""});
  ASSERT_TRUE(transport->send({"GET", server.url()}, base::Milliseconds(20'000), {}));
  EXPECT_THAT(patience_ms(server.port()), testing::ElementsAre(30'000u));
}

}  // namespace
}  // namespace net
