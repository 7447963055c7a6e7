// libcurl and cpprestsdk side by side, over TLS on loopback: GETs one after another and ten at
// once, and a watch. Prints a table; docs/benchmarks.md says how to read it.
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "libs/net/cpprest/cpprest_transport.h"
#include "libs/net/curl_transport.h"
#include "libs/net/testing/tls_identity.h"

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr base::Milliseconds kLong{60'000};
constexpr std::size_t kEventBytes = 1'600;  // With its time in the first 20.
constexpr int kEvents = 2'000;              // Of the watch, one each millisecond.
constexpr int kFlood = 50'000;              // Of the other watch, as fast as they go.
constexpr int kRounds = 7;

// --- The other side, a process of its own: its CPU is not ours.

std::string event() {
  char text[32];
  std::snprintf(text, sizeof text, "%020lld",
                static_cast<long long>(Clock::now().time_since_epoch().count()));
  return text + std::string(kEventBytes - 21, 'e') + "\n";
}

void send(SSL* link, const std::string& bytes) {
  if (SSL_write(link, bytes.data(), int(bytes.size())) <= 0) _exit(0);
}

void watch(SSL* link, int events, bool paced) {
  send(link, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < events; ++i) {
    if (paced) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    send(link, "640\r\n" + event() + "\r\n");
  }
  send(link, "0\r\n\r\n");
}

void serve(int fd, SSL_CTX* context) {
  SSL* link = SSL_new(context);
  SSL_set_fd(link, fd);
  std::string head;
  char bytes[16 << 10];
  for (int got = SSL_accept(link); got > 0;) {
    const std::size_t end = head.find("\r\n\r\n");
    if (end == std::string::npos) {
      got = SSL_read(link, bytes, sizeof bytes);
      if (got > 0) head.append(bytes, std::size_t(got));
      continue;
    }
    if (head.starts_with("GET /watch"))
      watch(link, kEvents, true);
    else if (head.starts_with("GET /flood"))
      watch(link, kFlood, false);
    else
      send(link, "HTTP/1.1 200 OK\r\nContent-Length: 130\r\n\r\n" + std::string(130, 'x'));
    head.erase(0, end + 4);
  }
  SSL_free(link);
  close(fd);
}

[[noreturn]] void serve_all(int listener, const net::TlsIdentity& identity) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context, identity.certificate.get());
  SSL_CTX_use_PrivateKey(context, identity.key.get());
  for (;;) std::thread(serve, accept(listener, nullptr, nullptr), context).detach();
}

// --- Our side.

Microseconds cpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return double(time.tv_sec) * 1e6 + double(time.tv_usec);
  };
  return Microseconds(of(usage.ru_utime) + of(usage.ru_stime));
}

struct Row {
  const char* what;
  double p50, p99, each_second, cpu_each;  // Microseconds, and how many in a second.

  void keep_best(const Row& other) {
    p50 = std::min(p50, other.p50);
    p99 = std::min(p99, other.p99);
    each_second = std::max(each_second, other.each_second);
    cpu_each = std::min(cpu_each, other.cpu_each);
  }
};

Row measure(const char* what, int count, const std::function<void(std::vector<double>&)>& work) {
  std::vector<double> waits;
  const auto began = Clock::now();
  const auto cpu_before = cpu();
  work(waits);
  const double cpu_each = (cpu() - cpu_before).count() / count;
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::sort(waits.begin(), waits.end());
  return {what, waits[waits.size() / 2], waits[waits.size() * 99 / 100], count / seconds, cpu_each};
}

void check(const net::Reply& reply) {
  if (reply && reply->status == 200) return;
  std::fprintf(stderr, "%s\n", reply ? "not 200" : reply.error().message.c_str());
  std::exit(1);
}

void one_after_another(net::Transport& transport, const std::string& url, int count,
                       std::vector<double>& waits) {
  for (int i = 0; i < count; ++i) {
    const auto began = Clock::now();
    check(transport.send({"GET", url}, kLong, {}));
    waits.push_back(Microseconds(Clock::now() - began).count());
  }
}

void at_once(net::Transport& transport, const std::string& url, int count, int width,
             std::vector<double>& waits) {
  std::latch all(width);
  std::atomic<int> left = count;
  waits.resize(std::size_t(count));
  std::function<void()> next = [&] {
    const int mine = --left;
    if (mine < 0) return all.count_down();
    transport.start({"GET", url}, kLong, [&, mine, began = Clock::now()](net::Reply reply) {
      check(reply);
      waits[std::size_t(mine)] = Microseconds(Clock::now() - began).count();
      next();
    });
  };
  for (int i = 0; i < width; ++i) next();
  all.wait();
}

// Each event says when it was sent.
void follow(net::Transport& transport, const std::string& url, std::vector<double>& waits) {
  std::string held;
  const net::Sink sink{
      nullptr, [&](std::string_view bytes) {
        held += bytes;
        std::size_t at = 0;
        for (; held.size() - at >= kEventBytes; at += kEventBytes) {
          const Clock::duration sent(std::atoll(held.substr(at, 20).c_str()));
          waits.push_back(Microseconds(Clock::now().time_since_epoch() - sent).count());
        }
        held.erase(0, at);
        return true;
      }};
  check(transport.stream({"GET", url}, sink, kLong, {}));
}

std::vector<Row> round_over(net::Transport& transport, const std::string& url) {
  constexpr int kRequests = 3'000;
  std::vector<double> warm;
  at_once(transport, url, 100, 10, warm);
  return {measure("GET, one after another", kRequests,
                  [&](auto& waits) { one_after_another(transport, url, kRequests, waits); }),
          measure("GET, ten at once", kRequests,
                  [&](auto& waits) { at_once(transport, url, kRequests, 10, waits); }),
          measure("watch, 1,000 events/s", kEvents,
                  [&](auto& waits) { follow(transport, url + "/watch", waits); }),
          measure("watch, flood", kFlood,
                  [&](auto& waits) { follow(transport, url + "/flood", waits); })};
}

}  // namespace

int main() {
  const net::TlsIdentity identity;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 64) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 1;
  const pid_t server = fork();
  if (server == 0) serve_all(listener, identity);

  const std::string url = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const net::ConnectionOptions options{
      .ca_bundle = identity.certificate_pem(), .proxy = "", .connections_max = 10};
  struct {
    const char* name;
    std::unique_ptr<net::Transport> transport;
    std::vector<Row> best = {};
  } libraries[] = {{"libcurl", net::curl_transport(options)},
                   {"cpprestsdk", net::cpprest_transport(options)}};
  for (int round = 0; round < kRounds; ++round)
    for (auto& library : libraries) {
      const std::vector<Row> rows = round_over(*library.transport, url);
      if (library.best.empty()) library.best = rows;
      for (std::size_t i = 0; i < rows.size(); ++i) library.best[i].keep_best(rows[i]);
    }
  std::printf("| library | what | p50, us | p99, us | each s | CPU us each |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const auto& library : libraries)
    for (const Row& row : library.best)
      std::printf("| %s | %s | %.0f | %.0f | %.0f | %.1f |\n", library.name, row.what, row.p50,
                  row.p99, row.each_second, row.cpu_each);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
}
