#include "libs/net/testing/test_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>

#include "libs/base/strings.h"
#include "libs/net/testing/full_listener.h"

namespace net {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

base::Fd bind_any(int& port) {
  base::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

class TestServer::Link {
 public:
  Link(int fd, SSL_CTX* tls) : fd_(fd), ssl_(tls ? SSL_new(tls) : nullptr) {
    if (ssl_) SSL_set_fd(ssl_.get(), fd);
  }

  bool greet() { return !ssl_ || SSL_accept(ssl_.get()) == 1; }

  // 0 or less: no more comes.
  ssize_t receive(char* buffer, std::size_t size) {
    return ssl_ ? SSL_read(ssl_.get(), buffer, int(size)) : recv(fd_, buffer, size, 0);
  }

  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ssl_ ? SSL_write(ssl_.get(), bytes.data(), int(bytes.size()))
                                : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Until the other side closes or the server stops; its sockets are shut down then.
  void wait_for_close() {
    char byte;
    while (receive(&byte, 1) > 0) {
    }
  }

 private:
  const int fd_;
  const std::unique_ptr<SSL, Freed<SSL_free>> ssl_;
};

namespace {

// Reads one request at a time from a connection.
class Reader {
 public:
  explicit Reader(TestServer::Link& link) : link_(link) {}

  std::optional<Request> next() {
    const auto head = through("\r\n\r\n");
    if (!head) return std::nullopt;
    Request request = parse_head(*head);
    if (const auto coding = request.headers.find("Transfer-Encoding");
        coding && base::lower(*coding) == "chunked")
      return chunked(std::move(request));
    const auto length = base::parse_integer(request.headers.find("Content-Length").value_or("0"));
    const auto body = exactly(static_cast<std::size_t>(length.value_or(0)));
    if (!body) return std::nullopt;
    request.body = *body;
    return request;
  }

 private:
  static Request parse_head(std::string_view head) {
    Request request;
    const auto lines = base::split(head, '\n');
    const auto words = base::split(base::trim(lines.front()), ' ');
    request.method = words.front();
    request.url = words.size() > 1 ? words[1] : "";
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::string_view line = base::trim(lines[i]);
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      request.headers.add(std::string(line.substr(0, colon)),
                          std::string(base::trim(line.substr(colon + 1))));
    }
    return request;
  }

  std::optional<Request> chunked(Request request) {
    for (;;) {
      const auto line = through("\r\n");
      if (!line) return std::nullopt;
      const std::size_t size = std::strtoul(line->c_str(), nullptr, 16);
      const auto piece = exactly(size + 2);
      if (!piece) return std::nullopt;
      if (size == 0) return request;
      request.body.append(*piece, 0, size);
    }
  }

  bool more() {
    char buffer[64 << 10];
    const ssize_t got = link_.receive(buffer, sizeof buffer);
    if (got <= 0) return false;
    bytes_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  std::optional<std::string> through(std::string_view end) {
    for (;;) {
      const std::size_t at = bytes_.find(end);
      if (at != std::string::npos) return exactly(at + end.size());
      if (!more()) return std::nullopt;
    }
  }

  std::optional<std::string> exactly(std::size_t count) {
    while (bytes_.size() < count)
      if (!more()) return std::nullopt;
    std::string taken = bytes_.substr(0, count);
    bytes_.erase(0, count);
    return taken;
  }

  TestServer::Link& link_;
  std::string bytes_;
};

std::string head_of(const Answer& answer) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Said\r\n";
  std::size_t length = 0;
  for (const std::string& piece : answer.pieces) length += piece.size();
  for (const Header& header : answer.headers.all())
    head += header.name + ": " + header.value + "\r\n";
  if (answer.chunked)
    head += "Transfer-Encoding: chunked\r\n";
  else if (answer.end != Answer::End::kWhole)
    head += "Content-Length: " + std::to_string(length + 1'000'000) + "\r\n";
  else if (answer.status != 204 && answer.status != 304)
    head += "Content-Length: " + std::to_string(length) + "\r\n";
  return head + "\r\n";
}

std::string chunk_of(std::string_view piece) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return size + std::string(piece) + "\r\n";
}

}  // namespace

TestServer::TestServer(Handler handler, const TlsIdentity* identity)
    : tls_(identity ? SSL_CTX_new(TLS_server_method()) : nullptr), handler_(std::move(handler)) {
  if (identity) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
    SSL_CTX_use_certificate(tls_.get(), identity->certificate.get());
    SSL_CTX_use_PrivateKey(tls_.get(), identity->key.get());
  }
  listener_ = bind_any(port_);
  if (listen(listener_.get(), 512) != 0) std::abort();
  accepting_ = std::jthread([this](std::stop_token stop) { accept_all(stop); });
}

TestServer::~TestServer() {
  accepting_.request_stop();
  shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
  {
    std::lock_guard lock(mutex_);
    for (std::jthread& thread : serving_) thread.request_stop();
    for (int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  serving_.clear();
}

void TestServer::play(Handler handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

std::string TestServer::url() const {
  return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

std::vector<Request> TestServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t TestServer::connections() const {
  std::lock_guard lock(mutex_);
  return connections_;
}

std::size_t TestServer::open_connections() const {
  std::lock_guard lock(mutex_);
  return open_.size();
}

bool TestServer::wait_until(const std::function<bool()>& fact, base::Milliseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!fact()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, base::Milliseconds(20));
  }
  return true;
}

void TestServer::accept_all(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::lock_guard lock(mutex_);
    ++connections_;
    open_.insert(fd);
    serving_.emplace_back([this, fd](std::stop_token stop) { serve(fd, stop); });
    changed_.notify_all();
  }
}

void TestServer::serve(int fd, std::stop_token stop) {
  Link link(fd, tls_.get());
  Reader reader(link);
  const bool greeted = link.greet();
  while (auto request = greeted ? reader.next() : std::nullopt) {
    Handler handler;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(*request);
      handler = handler_;
      changed_.notify_all();
    }
    if (!send_answer(link, handler(*request), *request, stop)) break;
  }
  std::lock_guard lock(mutex_);
  open_.erase(fd);
  close(fd);
  changed_.notify_all();
}

// False: the connection is over.
bool TestServer::send_answer(Link& link, const Answer& answer, const Request& request,
                             std::stop_token stop) {
  if (answer.delay > base::Milliseconds(0)) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, answer.delay, [] { return false; });
  }
  if (!answer.raw.empty()) {
    link.send_all(answer.raw);
  } else if (!answer.headless) {
    if (!link.send_all(head_of(answer))) return false;
    if (request.method == "HEAD") return true;
    for (const std::string& piece : answer.pieces)
      if (!link.send_all(answer.chunked ? chunk_of(piece) : piece)) return false;
  }
  if (answer.end == Answer::End::kSilence) {
    link.wait_for_close();
    return false;
  }
  if (answer.end != Answer::End::kWhole || !answer.raw.empty()) return false;
  return !answer.chunked || link.send_all("0\r\n\r\n");
}

std::string dead_url() {
  int port = 0;
  const base::Fd bound = bind_any(port);  // Bound and closed again: nobody listens there.
  return "http://127.0.0.1:" + std::to_string(port);
}

FullListener::FullListener() {
  int port = 0;
  listener_ = bind_any(port);
  if (listen(listener_.get(), 0) != 0) std::abort();
  const sockaddr_in address = loopback(port);
  for (int i = 0; i < 4; ++i) {
    waiting_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    [[maybe_unused]] const int pending =
        connect(waiting_.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  url_ = "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace net
