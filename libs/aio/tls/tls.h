#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/certificate.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

// TLS 1.2 and 1.3 over connected streams, by OpenSSL. What comes back is a Stream like any other,
// with one difference: a peer that goes without its farewell (close_notify) has been cut short, and
// reading tells so instead of an end. Without ALPN, resumption and renegotiation.
namespace aio {

// OpenSSL's SSL_CTX: what one side believes and shows, read once for any number of connections.
struct TlsContext;

class TlsClient {
 public:
  struct Options {
    std::optional<std::string> authorities = {};   // Whom to believe, in PEM; none: the system's.
    std::optional<base::Certified> identity = {};  // Shown to a server that asks who comes.
  };
  // kInvalid: no certificate, or a key that is not its own.
  static base::Result<TlsClient> with(const Options& options);

  // `stream` speaks TLS from here on, and is the returned stream's. `host`, a DNS name or an IP
  // address, is what the server's certificate must be for. kUnavailable: it is for another, nobody
  // believed vouches for it, or no handshake came about in that time.
  Task<base::Result<std::shared_ptr<Stream>>> secure(std::shared_ptr<Stream> stream,
                                                     std::string host,
                                                     base::Milliseconds limit) const;

 private:
  explicit TlsClient(std::shared_ptr<TlsContext> context) : context_(std::move(context)) {}
  std::shared_ptr<TlsContext> context_;
};

class TlsServer {
 public:
  struct Options {
    base::Certified identity;  // The certificate may have the chain behind it.
    // In PEM: a client must show a certificate that one of these vouches for; none: it need not.
    std::optional<std::string> client_authorities = {};
  };
  static base::Result<TlsServer> with(const Options& options);

  struct Secured {
    std::shared_ptr<Stream> stream;
    std::optional<base::CertificateFacts> client;  // What it showed and we believe.
  };
  Task<base::Result<Secured>> secure(std::shared_ptr<Stream> stream,
                                     base::Milliseconds limit) const;

 private:
  explicit TlsServer(std::shared_ptr<TlsContext> context) : context_(std::move(context)) {}
  std::shared_ptr<TlsContext> context_;
};

}  // namespace aio
