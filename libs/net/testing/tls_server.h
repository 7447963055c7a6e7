#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "libs/base/fd.h"

namespace net {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* thing) const {
    Free(thing);
  }
};

// A certificate that vouches for itself, for 127.0.0.1 unless said otherwise: also the authority
// that a client believes.
struct TlsIdentity {
  explicit TlsIdentity(const char* alternative_name = "IP:127.0.0.1");
  std::string certificate_pem() const;
  std::string key_pem() const;

  std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> key;
  std::unique_ptr<X509, Freed<X509_free>> certificate;
};

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

 private:
  void serve();
  void answer(SSL* link);

  const std::string body_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  base::Fd listener_;
  std::string url_;
  std::atomic<int> requests_ = 0;
  mutable std::mutex mutex_;
  std::string last_head_;
  std::jthread thread_;
};

}  // namespace net
