#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agentd/door/caller.h"
#include "libs/aio/loop.h"
#include "libs/aio/tls/tls.h"
#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace agentd {

struct TcpDoorSettings {
  std::string address;  // IPv4 or IPv6, a number.
  std::uint16_t port = 0;
  // Files, read anew as they change; one that is spoilt meanwhile leaves what it said before.
  std::filesystem::path certificate, key;    // PEM; the chain may stand behind the certificate.
  std::filesystem::path client_authorities;  // Who vouches for a client's certificate; or
  std::filesystem::path token;               // what its hello must show.
  base::Milliseconds look{1'000};            // At the files again, no sooner; by who comes then.
};

// Where harnesses of other nodes connect: TLS, and either a certificate of their own or a token.
class TcpDoor {
 public:
  static constexpr std::size_t kHandshakesMax = 64;  // At once; more are hung up on.
  static constexpr base::Milliseconds kHandshakeWithin{5'000};

  // Listens; kInvalid, kNotFound: files that are no good, an address that is none.
  static base::Result<std::unique_ptr<TcpDoor>> at(aio::Executor executor, TcpDoorSettings settings,
                                                   Serve serve);

  aio::Task<> open();  // Lets in whoever comes, until it is cancelled.
  std::uint16_t port() const { return port_; }

 private:
  TcpDoor(aio::Executor executor, TcpDoorSettings settings, Serve serve);
  base::Result<base::Done> read_files();
  void follow_files();
  void admit(base::Fd connection);
  aio::Task<> shake_hands(std::shared_ptr<aio::Stream> stream, std::string from);

  const aio::Executor executor_;
  const TcpDoorSettings settings_;
  const Serve serve_;
  base::Fd listener_;
  std::uint16_t port_ = 0;
  base::Moment looked_;
  std::string trouble_;            // With the files, at the last look.
  aio::TlsServer::Options shown_;  // As last read.
  std::optional<aio::TlsServer> tls_;
  std::optional<std::string> token_;
  aio::TaskGroup handshakes_;  // Last: they use all of the above.
};

}  // namespace agentd
