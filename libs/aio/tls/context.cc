#include <openssl/err.h>
#include <openssl/pem.h>

#include "libs/aio/tls/openssl.h"
#include "libs/aio/tls/tls.h"

namespace aio {
namespace {

using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::shared_ptr<TlsContext>;

int no_passphrase(char*, int, int, void*) { return 0; }

Bio reading(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate next_certificate(BIO* pem) {
  Certificate read(PEM_read_bio_X509(pem, nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return read;
}

base::Error invalid(std::string_view what) {
  return base::error(base::ErrorCode::kInvalid, "TLS: ", what);
}

Context context_for(const SSL_METHOD* side) {
  auto context = std::make_shared<TlsContext>();
  context->ssl.reset(SSL_CTX_new(side));
  SSL_CTX* ssl = context->ssl.get();
  SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
  SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(ssl, 0);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  return context;
}

base::Result<base::Done> believe(SSL_CTX* ssl, const std::string& authorities) {
  const Bio pem = reading(authorities);
  int count = 0;
  while (const Certificate authority = next_certificate(pem.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), authority.get());
    SSL_CTX_add_client_CA(ssl, authority.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return invalid("whom to believe holds no certificate in PEM");
  return base::Done{};
}

base::Result<base::Done> show(SSL_CTX* ssl, const base::Certified& identity) {
  const Bio pem = reading(identity.certificate);
  const Certificate own = next_certificate(pem.get());
  const Key key(
      PEM_read_bio_PrivateKey(reading(identity.key).get(), nullptr, no_passphrase, nullptr));
  const bool fits = own && key && SSL_CTX_use_certificate(ssl, own.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(ssl, key.get()) == 1;
  ERR_clear_error();
  if (!fits) return invalid("the certificate and key to show are none in PEM, or do not fit");
  while (const Certificate link = next_certificate(pem.get()))
    SSL_CTX_add1_chain_cert(ssl, link.get());
  return base::Done{};
}

}  // namespace

std::string openssl_error() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "the connection ended";
}

base::Result<TlsClient> TlsClient::with(const Options& options) {
  Context context = context_for(TLS_client_method());
  SSL_CTX* ssl = context->ssl.get();
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  if (options.authorities) {
    CHECK_OK(believe(ssl, *options.authorities));
  } else if (SSL_CTX_set_default_verify_paths(ssl) != 1) {
    ERR_clear_error();
    return invalid("the system's authorities cannot be read");
  }
  if (options.identity) CHECK_OK(show(ssl, *options.identity));
  return TlsClient(std::move(context));
}

base::Result<TlsServer> TlsServer::with(const Options& options) {
  Context context = context_for(TLS_server_method());
  SSL_CTX* ssl = context->ssl.get();
  CHECK_OK(show(ssl, options.identity));
  if (options.client_authorities) {
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    CHECK_OK(believe(ssl, *options.client_authorities));
  }
  return TlsServer(std::move(context));
}

}  // namespace aio
