#include "libs/net/testing/tls_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <utility>

namespace net {
namespace {

using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

}  // namespace

TlsIdentity::TlsIdentity(const char* alternative_name)
    : key(EVP_EC_gen("P-256")), certificate(X509_new()) {
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative_name);
  X509_add_ext(certificate.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
}

std::string TlsIdentity::certificate_pem() const {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate.get());
  return text_of(memory.get());
}

std::string TlsIdentity::key_pem() const {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(memory.get());
}

TlsServer::TlsServer(const TlsIdentity& own, const TlsIdentity* client, std::string body)
    : body_(std::move(body)),
      context_(SSL_CTX_new(TLS_server_method())),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  SSL_CTX_use_certificate(context_.get(), own.certificate.get());
  SSL_CTX_use_PrivateKey(context_.get(), own.key.get());
  if (client) {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), client->certificate.get());
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_.get(), 16), 0);
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  url_ = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::jthread([this] { serve(); });
}

TlsServer::~TlsServer() { shutdown(listener_.get(), SHUT_RDWR); }

void TlsServer::serve() {
  for (;;) {
    const base::Fd fd(accept(listener_.get(), nullptr, nullptr));
    if (!fd) return;
    const std::unique_ptr<SSL, Freed<SSL_free>> link(SSL_new(context_.get()));
    SSL_set_fd(link.get(), fd.get());
    if (SSL_accept(link.get()) == 1) answer(link.get());
    SSL_shutdown(link.get());
  }
}

void TlsServer::answer(SSL* link) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const int got = SSL_read(link, buffer, sizeof buffer);
    if (got <= 0) return;
    head.append(buffer, static_cast<std::size_t>(got));
  }
  {
    std::lock_guard lock(mutex_);
    last_head_ = head;
  }
  ++requests_;
  const Certificate peer(SSL_get1_peer_certificate(link));
  const std::string body = !body_.empty() ? body_ : peer ? "known" : "anonymous";
  const std::string reply =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  SSL_write(link, reply.data(), static_cast<int>(reply.size()));
}

}  // namespace net
