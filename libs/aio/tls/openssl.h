#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace aio {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

struct TlsContext {
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> ssl;
};

// What OpenSSL says of its last failure in this thread; nothing of it stays.
std::string openssl_error();

}  // namespace aio
