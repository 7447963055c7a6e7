#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libs/base/fd.h"
#include "libs/net/testing/answer.h"
#include "libs/net/testing/tls_identity.h"

namespace net {

// An HTTP/1.1 server of plain threads and sockets on 127.0.0.1, as honest or as rude as its handler
// says; over TLS when it is given an identity. It counts what really arrived.
class TestServer {
 public:
  class Link;  // One connection's bytes.

  explicit TestServer(Handler handler, const TlsIdentity* identity = nullptr);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void play(Handler handler);
  std::string url() const;  // "http://127.0.0.1:PORT", or https
  int port() const { return port_; }
  std::vector<Request> requests() const;
  std::size_t connections() const;
  std::size_t open_connections() const;
  // Waits until `fact` holds, looked at after every event; false after `patience`.
  bool wait_until(const std::function<bool()>& fact,
                  base::Milliseconds patience = base::Milliseconds(60'000)) const;

 private:
  void accept_all(std::stop_token stop);
  void serve(int fd, std::stop_token stop);
  bool send_answer(Link& link, const Answer& answer, const Request& request, std::stop_token stop);

  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> tls_;
  base::Fd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  Handler handler_;
  std::vector<Request> requests_;
  std::size_t connections_ = 0;
  std::set<int> open_;
  std::list<std::jthread> serving_;
  std::jthread accepting_;
};

// A URL of this machine at which nothing listens.
std::string dead_url();

}  // namespace net
