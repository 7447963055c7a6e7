#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

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

}  // namespace net
