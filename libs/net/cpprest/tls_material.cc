#include "libs/net/cpprest/tls_material.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace net {

using base::ErrorCode;

base::Result<TlsMaterial> TlsMaterial::from_pem(const std::string& ca_bundle,
                                                const std::string& certificate,
                                                const std::string& key) {
  TlsMaterial made;
  if (!ca_bundle.empty()) {
    const Certificates believed = certificates_in(ca_bundle);
    if (believed.empty())
      return base::error(ErrorCode::kInvalid, "the CA bundle holds no PEM certificate");
    made.authorities_.reset(X509_STORE_new());
    for (const auto& each : believed) X509_STORE_add_cert(made.authorities_.get(), each.get());
  }
  if (certificate.empty()) return made;

  made.chain_ = certificates_in(certificate);
  if (made.chain_.empty())
    return base::error(ErrorCode::kInvalid, "the client certificate is no PEM certificate");
  const std::unique_ptr<BIO, Free> memory(BIO_new_mem_buf(key.data(), int(key.size())));
  // Without a callback OpenSSL would ask for the password of an encrypted key on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  made.key_.reset(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_password, nullptr));
  if (!made.key_ || X509_check_private_key(made.chain_.front().get(), made.key_.get()) != 1) {
    ERR_clear_error();
    return base::error(ErrorCode::kInvalid, "the client key is not the certificate's PEM key");
  }
  return made;
}

void TlsMaterial::give_to(SSL_CTX* context) const {
  if (authorities_) {
    X509_STORE_up_ref(authorities_.get());
    SSL_CTX_set_cert_store(context, authorities_.get());
  }
  if (!key_) return;
  SSL_CTX_use_certificate(context, chain_.front().get());
  for (std::size_t i = 1; i < chain_.size(); ++i) SSL_CTX_add1_chain_cert(context, chain_[i].get());
  SSL_CTX_use_PrivateKey(context, key_.get());
}

TlsMaterial::Certificates TlsMaterial::certificates_in(const std::string& pem) {
  const std::unique_ptr<BIO, Free> memory(BIO_new_mem_buf(pem.data(), int(pem.size())));
  Certificates found;
  while (X509* next = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr))
    found.emplace_back(next);
  ERR_clear_error();
  return found;
}

}  // namespace net
