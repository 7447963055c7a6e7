#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "libs/base/result.h"

namespace net {

// What a TLS client believes and shows: parsed once from PEM text, given to one context after
// another.
class TlsMaterial {
 public:
  // Empty texts: the authorities that the context has, and no certificate.
  static base::Result<TlsMaterial> from_pem(const std::string& ca_bundle,
                                            const std::string& certificate, const std::string& key);

  void give_to(SSL_CTX* context) const;

 private:
  struct Free {
    void operator()(X509_STORE* store) const { X509_STORE_free(store); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(BIO* memory) const { BIO_free(memory); }
  };
  using Certificates = std::vector<std::unique_ptr<X509, Free>>;

  static Certificates certificates_in(const std::string& pem);

  std::unique_ptr<X509_STORE, Free> authorities_;
  Certificates chain_;  // Our own certificate first.
  std::unique_ptr<EVP_PKEY, Free> key_;
};

}  // namespace net
