#include "libs/aio/tls/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <boost/asio/this_coro.hpp>

#include "libs/aio/loop.h"
#include "libs/aio/tls/tls_stream.h"

namespace aio {
namespace {

base::Error not_secured(std::string_view whom, std::string_view why) {
  return base::error(base::ErrorCode::kUnavailable, "no secure connection ", whom, ": ", why);
}

// The server must prove to be `host`, which it is also told, so that one of many can be meant.
bool expect(SSL* ssl, const std::string& host) {
  if (base::is_ip_address(host))
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return base::is_host_name(host) && SSL_set1_host(ssl, host.c_str()) == 1 &&
         SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

std::optional<base::CertificateFacts> shown_by(const SSL* ssl) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (!certificate) return std::nullopt;
  const Bio memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  auto facts = base::facts_of_certificate({bytes, static_cast<std::size_t>(size)});
  return facts ? std::optional(*std::move(facts)) : std::nullopt;
}

Task<base::Result<base::Done>> shake_hands(std::shared_ptr<TlsStream> stream, std::string whom,
                                           base::Milliseconds limit) {
  const auto shaken = co_await within(stream->shake_hands(), limit);
  if (shaken && *shaken) co_return base::Done{};
  stream->close();
  co_return not_secured(whom, shaken ? std::string_view(shaken->error().message)
                                     : std::string_view("no handshake in time"));
}

}  // namespace

Task<base::Result<std::shared_ptr<Stream>>> TlsClient::secure(std::shared_ptr<Stream> stream,
                                                              std::string host,
                                                              base::Milliseconds limit) const {
  const auto context = context_;
  Ssl ssl(SSL_new(context->ssl.get()));
  SSL_set_connect_state(ssl.get());
  if (!expect(ssl.get(), host))
    co_return base::error(base::ErrorCode::kInvalid, "\"", host,
                          "\" is neither a host name nor an IP address");
  const auto secured = std::make_shared<TlsStream>(co_await boost::asio::this_coro::executor,
                                                   std::move(stream), std::move(ssl));
  CO_CHECK_OK(co_await shake_hands(secured, "to " + host, limit));
  co_return secured;
}

Task<base::Result<TlsServer::Secured>> TlsServer::secure(std::shared_ptr<Stream> stream,
                                                         base::Milliseconds limit) const {
  const auto context = context_;
  Ssl ssl(SSL_new(context->ssl.get()));
  SSL_set_accept_state(ssl.get());
  const auto secured = std::make_shared<TlsStream>(co_await boost::asio::this_coro::executor,
                                                   std::move(stream), std::move(ssl));
  CO_CHECK_OK(co_await shake_hands(secured, "with a client", limit));
  co_return Secured{secured, shown_by(secured->ssl())};
}

}  // namespace aio
