#include "libs/net/server/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/net/curl_transport.h"
#include "libs/net/server/routes.h"

namespace {
std::atomic<int> closed_in_vain = 0;  // Descriptors that were none any more.
}

#ifndef __SANITIZE_THREAD__  // Which must see every one.
extern "C" int close(int fd) {
  const auto result = static_cast<int>(::syscall(SYS_close, fd));
  if (result != 0 && errno == EBADF) ++closed_in_vain;
  return result;
}
#endif

namespace net {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A bare client, so that a test may say what no HTTP library would.
class Client {
 public:
  explicit Client(std::uint16_t port, const char* from = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &address.sin_addr);
    const bool bound =
        ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        bound && ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  explicit Client(base::Fd socket) : fd_(std::move(socket)), connected_(static_cast<bool>(fd_)) {
    ::fcntl(fd_.get(), F_SETFL, 0);  // It waits.
  }

  bool connected() const { return connected_; }
  // False when the other side is known to have closed.
  bool say(std::string_view text) {
    return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // What comes until the other side closes.
  std::string hear_all() {
    std::string all;
    char buffer[4096];
    ssize_t got;
    while ((got = ::recv(fd_.get(), buffer, sizeof buffer, 0)) > 0) all.append(buffer, got);
    closed_ = got == 0 || errno == ECONNRESET;
    return all;
  }
  bool closed() const { return closed_; }
  bool has_reply() {
    char byte;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK) == 1;
  }

 private:
  base::Fd fd_;
  bool connected_ = false, closed_ = false;
};

std::string ask(std::uint16_t port, std::string_view request) {
  Client client(port);
  client.say(request);
  return client.hear_all();
}

std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

ServedHandler three_routes() {
  return route(
      {{"GET", "/metrics", [](const auto&) { return ServedAnswer{200, "up 1\n"}; }},
       {"GET", "/healthz", probe([] { return std::string(); })},
       {"GET", "/readyz", probe([] { return std::string("the first list is missing"); })},
       {"POST", "/echo", [](const auto& request) { return ServedAnswer{200, request.body}; }}});
}

std::unique_ptr<HttpServer> started(ServerOptions options, ServedHandler handler) {
  auto server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return *std::move(server);
}

TEST(HttpServer, AnswersByMethodAndPath) {
  const auto server = started({}, three_routes());
  EXPECT_THAT(get(server->port(), "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(get(server->port(), "/metrics?a=b"), EndsWith("\r\n\r\nup 1\n"));
  EXPECT_THAT(get(server->port(), "/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get(server->port(), "/nowhere"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(server->port(), "/echo"), StartsWith("HTTP/1.1 405 "));
  const auto unready = get(server->port(), "/readyz");
  EXPECT_THAT(unready, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(unready, EndsWith("the first list is missing\n"));
}

TEST(HttpServer, LeavesTheBodyOutForHead) {
  const auto server = started({}, three_routes());
  const auto reply =
      ask(server->port(), "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST(HttpServer, HandsTheBodyOn) {
  const auto server = started({}, three_routes());
  EXPECT_THAT(ask(server->port(),
                  "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  "Content-Length: 5\r\n\r\nhello"),
              EndsWith("\r\n\r\nhello"));
}

TEST(HttpServer, RefusesABodyThatIsTooLarge) {
  const auto server = started({.body_bytes_max = 8}, three_routes());
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  EXPECT_THAT(ask(server->port(), head + "Content-Length: 8\r\n\r\n12345678"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(server->port(), head + "Content-Length: 9\r\n\r\n123456789"),
              StartsWith("HTTP/1.1 413 "));
}

TEST(HttpServer, RefusesAHeadThatIsTooLarge) {
  const auto server = started({.head_bytes_max = 4096}, three_routes());
  EXPECT_THAT(ask(server->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: " +
                                      std::string(8192, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServer, CutsAClientThatDripsItsHead) {
  const auto server = started({.patience = 300ms}, three_routes());
  Client slow(server->port());
  ASSERT_TRUE(slow.say("GET /metrics HTTP/1.1\r\nX-Drip: "));
  const auto begin = std::chrono::steady_clock::now();
  std::condition_variable nobody;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  // A byte each 20 ms keeps an idle limit from ever firing.
  while (slow.say("a") && std::chrono::steady_clock::now() - begin < 100s) {
    nobody.wait_for(lock, 20ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
  EXPECT_THAT(get(server->port(), "/healthz"), EndsWith("ok\n"));  // Others are served.
}

TEST(HttpServer, CutsAClientThatSaysNothing) {
  const auto server = started({.patience = 200ms}, three_routes());
  Client silent(server->port());
  silent.hear_all();
  EXPECT_TRUE(silent.closed());
}

TEST(HttpServer, CutsAClientThatDoesNotReadItsAnswer) {
  const std::string much(32u << 20, 'x');
  const auto server =
      started({.patience = 300ms}, [&](const ServedRequest&) { return ServedAnswer{200, much}; });
  Client deaf(server->port());
  ASSERT_TRUE(deaf.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  // It does not read; once cut, what it says comes back as a reset.
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::condition_variable nobody;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  while (deaf.say("a") && std::chrono::steady_clock::now() < deadline) nobody.wait_for(lock, 20ms);
  EXPECT_LT(deaf.hear_all().size(), much.size());
  EXPECT_TRUE(deaf.closed());
}

TEST(HttpServer, DoesNotCutAHandlerThatTakesLongerThanThePatience) {
  const auto server = started({.patience = 100ms}, [](const ServedRequest&) {
    std::condition_variable nobody;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    nobody.wait_for(lock, 500ms);
    return ServedAnswer{200, "late\n"};
  });
  EXPECT_THAT(get(server->port(), "/"), EndsWith("late\n"));
}

TEST(HttpServer, ServesManyAtATimeAlthoughEachHandlerBlocks) {
  constexpr int kClients = 16;
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  // Each waits until all are inside: one at a time would never end.
  const auto server = started({}, [&](const ServedRequest&) {
    std::unique_lock lock(mutex);
    ++here;
    all_here.notify_all();
    const bool met = all_here.wait_for(lock, 60s, [&] { return here == kClients; });
    return ServedAnswer{met ? 200 : 500, "\n"};
  });
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back(
          [&] { good += get(server->port(), "/").starts_with("HTTP/1.1 200") ? 1 : 0; });
    }
  }
  EXPECT_EQ(good, kClients);
}

TEST(HttpServer, ClosesConnectionsBeyondItsBoundAndRecovers) {
  const auto server = started({.connections_max = 2}, three_routes());
  {
    Client first(server->port()), second(server->port());
    const std::string keep = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    ASSERT_TRUE(first.say(keep) && first.has_reply());
    ASSERT_TRUE(second.say(keep) && second.has_reply());
    Client third(server->port());
    EXPECT_EQ(third.hear_all(), "");
    EXPECT_TRUE(third.closed());
  }
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (get(server->port(), "/healthz").empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
}

TEST(HttpServer, ClosesConnectionsBeyondTheBoundOfOneAddressAndServesOthers) {
  const auto server = started({.connections_each_max = 2}, three_routes());
  const std::string keep = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  {
    Client first(server->port()), second(server->port());
    ASSERT_TRUE(first.say(keep) && first.has_reply());
    ASSERT_TRUE(second.say(keep) && second.has_reply());
    Client third(server->port());
    EXPECT_EQ(third.hear_all(), "");
    EXPECT_TRUE(third.closed());
    Client other(server->port(), "127.0.0.2");
    EXPECT_TRUE(other.say(keep) && other.has_reply());
  }
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (get(server->port(), "/healthz").empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
}

TEST(HttpServer, TellsWhoAsksOverAUnixSocket) {
  const base::TemporaryFolder folder;
  const auto listener = base::UnixListener::at(folder / "s", {});
  ASSERT_TRUE(listener) << listener.error().message;
  const auto server =
      HttpServer::start_on(*(*listener)->share(), {}, [](const ServedRequest& request) {
        const auto& peer = request.peer;
        return ServedAnswer{200, peer
                                     ? std::to_string(peer->pid) + " " + std::to_string(peer->uid) +
                                           " " + request.client + request.body
                                     : "nobody"};
      });
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ((*server)->port(), 0);
  for (int i = 0; i < 3; ++i) {
    Client client(*base::connect_to(folder / "s"));
    client.say("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_THAT(client.hear_all(), EndsWith("\r\n\r\n" + std::to_string(::getpid()) + " " +
                                            std::to_string(::geteuid()) + " hello"));
  }
}

TEST(HttpServer, CutsWhoDripsOverAUnixSocketToo) {
  const base::TemporaryFolder folder;
  const auto listener = base::UnixListener::at(folder / "s", {});
  ASSERT_TRUE(listener) << listener.error().message;
  const auto server =
      HttpServer::start_on(*(*listener)->share(), {.patience = 200ms}, three_routes());
  Client silent(*base::connect_to(folder / "s"));
  silent.hear_all();
  EXPECT_TRUE(silent.closed());
}

TEST(HttpServer, NamesTheAddressThatItCannotListenOn) {
  const auto server = started({}, three_routes());
  const auto taken = HttpServer::start({.port = server->port()}, three_routes());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "cannot listen on 127.0.0.1:" + std::to_string(server->port()) +
                                       ": Address already in use");
  const auto named = HttpServer::start({.address = "localhost"}, three_routes());
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message, HasSubstr("give an IPv4 or IPv6 address"));
}

TEST(HttpServer, SurvivesWhatIsNotHttp) {
  const auto server = started({}, three_routes());
  Client(server->port()).say("\x16\x03\x01\x02");
  ask(server->port(), "nonsense\r\n\r\n");
  EXPECT_THAT(get(server->port(), "/healthz"), EndsWith("ok\n"));
}

base::Certified identity_of(const base::Certified& authority, const std::string& common_name) {
  const auto now = base::SystemClock().wall();
  auto made = base::issue(authority, {common_name, {"127.0.0.1"}, now - 1min, now + 1h});
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

base::Certified authority() {
  const auto now = base::SystemClock().wall();
  return *base::make_authority({"authority", {}, now - 1min, now + 1h});
}

Reply ask_over_tls(std::uint16_t port, const base::Certified& authority) {
  const auto transport = curl_transport({.ca_bundle = authority.certificate});
  return transport->send({.url = "https://127.0.0.1:" + std::to_string(port) + "/",
                          .headers = {{"Authorization", "Bearer c4n4ry"}}},
                         20s, {});
}

TEST(HttpServer, TellsWhoAsksOverTls) {
  const base::Certified trusted = authority();
  const auto server = started({.identity = identity_of(trusted, "one")}, [](const auto& request) {
    return ServedAnswer{.status = 429,
                        .body = request.client + " " + request.authorization,
                        .retry_after = base::Seconds(7)};
  });
  const auto reply = ask_over_tls(server->port(), trusted);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "127.0.0.1 Bearer c4n4ry");
  EXPECT_EQ(reply->headers.find("Retry-After"), "7");
  EXPECT_FALSE(ask_over_tls(server->port(), authority())) << "a stranger's word";
  EXPECT_EQ(get(server->port(), "/"), "") << "nobody is served in the clear";
}

TEST(HttpServer, RenewsItsCertificateWithoutRefusingAnybody) {
  const base::Certified before = authority(), after = authority();
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false, renewed = false;
  const auto server = started({.identity = identity_of(before, "one")}, [&](const auto&) {
    std::unique_lock lock(mutex);
    if (std::exchange(inside, true)) return ServedAnswer{200, "at once\n"};
    changed.notify_all();
    changed.wait_for(lock, 60s, [&] { return renewed; });
    return ServedAnswer{200, "served\n"};
  });
  const std::uint16_t port = server->port();
  std::jthread under_way([&] {
    const auto reply = ask_over_tls(port, before);
    EXPECT_TRUE(reply && reply->body == "served\n") << "it came before";
  });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return inside; }));
  }
  std::jthread renewer([&] { EXPECT_TRUE(server->renew(identity_of(after, "two"))); });
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::jthread newcomer([&] {
    while (!ask_over_tls(port, after)) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::lock_guard lock(mutex);
    renewed = true;
    changed.notify_all();
  });
  newcomer.join();
  renewer.join();
  EXPECT_EQ(server->port(), port);
}

TEST(HttpServer, WaitsForNobodyWhenItIsStoppedWhileItRenews) {
  const base::Certified trusted = authority();
  const auto server =
      started({.patience = 1h, .identity = identity_of(trusted, "one")}, three_routes());
  Client idle(server->port());  // For all of the patience, if it may.
  ASSERT_TRUE(idle.say("\x16"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(server->renew(identity_of(trusted, "two"), stop.get_token()));
  idle.hear_all();
  EXPECT_TRUE(idle.closed());
}

TEST(HttpServer, RefusesACertificateThatDoesNotFit) {
  const int doubly_closed = closed_in_vain;
  const base::Certified trusted = authority();
  const base::Certified good = identity_of(trusted, "one");
  const auto refused =
      HttpServer::start({.identity = base::Certified{good.certificate, "no key"}}, three_routes());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot serve on 127.0.0.1: its certificate or key does not fit");
  const auto server = started({.identity = good}, three_routes());
  EXPECT_FALSE(server->renew({"no certificate", good.key}));
  EXPECT_TRUE(ask_over_tls(server->port(), trusted)) << "the one before stays in force";
  EXPECT_EQ(closed_in_vain, doubly_closed) << "it may be another thread's file by then";
}

}  // namespace
}  // namespace net
