#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace aio {

struct WebSocketOptions {
  std::string subprotocol;  // Which both sides must speak.
  std::size_t message_bytes_max = 0;
  base::Milliseconds handshake_within{10'000};
};

// Binary messages both ways (RFC 6455), uncompressed. One read and one write may be under way at
// once. Errors: kUnavailable when the other side or this one closed it, kInvalid for what is no
// binary message or is too long; after either it is of no more use. Who broke the rules has as long
// as a handshake to hang up before read() returns.
class WebSocket {
 public:
  // Answers the exchange's request for an upgrade, and has its connection from then on. kInvalid:
  // it asks for something else; that is answered too.
  static Task<base::Result<std::shared_ptr<WebSocket>>> accept(
      std::shared_ptr<HttpExchange> exchange, WebSocketOptions options);
  // Asks for one at `host` and `target` over a connected stream, of whatever kind. kDenied: it
  // answered 401 or 403; kInvalid: it speaks something else.
  static Task<base::Result<std::shared_ptr<WebSocket>>> open(std::shared_ptr<Stream> stream,
                                                             std::string host, std::string target,
                                                             HttpFields fields,
                                                             WebSocketOptions options);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  Task<base::Result<std::string>> read();
  Task<base::Result<base::Done>> write(std::string message);
  // One after the other; over a socket, what is small of them travels together.
  Task<base::Result<base::Done>> write_all(std::vector<std::string> messages);
  void reset();  // At once; whoever reads or writes hears of it.

  struct State;  // What it is made of; private to libs/aio.

 private:
  explicit WebSocket(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace aio
