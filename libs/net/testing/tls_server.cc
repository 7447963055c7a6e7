#include "libs/net/testing/tls_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <utility>

namespace net {

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
  // OpenSSL writes to peers that have gone.
  sigset_t broken_pipes;
  sigemptyset(&broken_pipes);
  sigaddset(&broken_pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipes, nullptr);
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
    const char* name = SSL_get_servername(link, TLSEXT_NAMETYPE_host_name);
    last_name_ = name ? name : "";
  }
  ++requests_;
  const std::unique_ptr<X509, Freed<X509_free>> peer(SSL_get1_peer_certificate(link));
  const std::string body = !body_.empty() ? body_ : peer ? "known" : "anonymous";
  const std::string reply =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  SSL_write(link, reply.data(), static_cast<int>(reply.size()));
}

}  // namespace net
