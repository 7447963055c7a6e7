#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "libs/base/fd.h"
#include "libs/net/testing/tls_identity.h"

namespace net {

// Answers every request with `body`, or, when that is empty, with whether it knows the client; one
// connection at a time. With `client`, only that one may come in.
class TlsServer {
 public:
  explicit TlsServer(const TlsIdentity& own, const TlsIdentity* client = nullptr,
                     std::string body = {});
  ~TlsServer();

  const std::string& url() const { return url_; }  // "https://127.0.0.1:PORT"
  int requests() const { return requests_; }
  std::string last_head() const {  // Of the newest request.
    std::lock_guard lock(mutex_);
    return last_head_;
  }
  std::string last_name() const {  // That its client asked for.
    std::lock_guard lock(mutex_);
    return last_name_;
  }

 private:
  void serve();
  void answer(SSL* link);

  const std::string body_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  base::Fd listener_;
  std::string url_;
  std::atomic<int> requests_ = 0;
  mutable std::mutex mutex_;
  std::string last_head_, last_name_;
  std::jthread thread_;
};

}  // namespace net
