#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libs/aio/stream.h"
#include "libs/aio/tls/openssl.h"

namespace aio {

// One side of a TLS connection. OpenSSL works on two rings of memory, one for each direction, that
// are filled from and emptied into the stream beneath. Private to libs/aio/tls.
class TlsStream final : public Stream {
 public:
  // Before the handshake.
  TlsStream(Executor executor, std::shared_ptr<Stream> beneath, Ssl ssl);
  ~TlsStream() override { close(); }

  Task<base::Result<base::Done>> shake_hands();
  const SSL* ssl() const;

  Task<base::Result<std::size_t>> read(char* buffer, std::size_t size) override;
  Task<base::Result<base::Done>> write(std::string_view bytes) override;
  Task<base::Result<base::Done>> wait_readable() override;
  Task<base::Result<base::Done>> wait_urgent() override;
  void close_write() override;
  void close() override;
  void reset() override;
  base::Fd release() override { return {}; }
  bool open() const override;
  int read_descriptor() const override;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace aio
