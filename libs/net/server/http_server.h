#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/base/certificate.h"
#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "libs/base/unix_socket.h"

namespace net {

struct ServedRequest {
  std::string method;  // HEAD arrives as GET; the body is then left out by the server.
  std::string path;    // Percent-decoded, without the query.
  std::string body = {};
  std::string authorization = {};  // That header; secret.
  // The address that it came from, without the port; empty over a Unix socket, which tells the
  // peer.
  std::string client = {};
  std::optional<base::Peer> peer = {};
};

struct ServedAnswer {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  std::optional<base::Seconds> retry_after = {};
};

// Called on the connection's own thread, many at a time; it may block, its connection waits.
using ServedHandler = std::function<ServedAnswer(const ServedRequest&)>;

struct ServerOptions {
  std::string address = "127.0.0.1";  // IPv4 or IPv6, a number.
  std::uint16_t port = 0;             // 0: any free one.
  std::size_t connections_max = 64;   // More are closed as they come.
  // The same for those from one address; 0: it may have them all.
  std::size_t connections_each_max = 0;
  std::size_t head_bytes_max = 16u << 10;
  std::size_t body_bytes_max = 64u << 10;
  // The longest that a connection may idle, take over sending its request, or over reading its
  // answer. Absolute: a byte now and then does not prolong it.
  base::Milliseconds patience{15'000};
  std::optional<base::Certified> identity = {};  // TLS (1.2 and 1.3) with that; none: plain HTTP.
};

// A small HTTP/1.1 server for what operators and agents ask of a program. It listens from start()
// until it is destroyed, which waits for handlers that run.
class HttpServer {
 public:
  static base::Result<std::unique_ptr<HttpServer>> start(const ServerOptions& options,
                                                         ServedHandler handler);
  // The same on a listening Unix socket; no address counts, and no bound of one.
  static base::Result<std::unique_ptr<HttpServer>> start_on(base::Fd listener,
                                                            const ServerOptions& options,
                                                            ServedHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;  // 0 on a Unix socket.

  // From here on new connections see this certificate; no connection is refused on the way. Those
  // that are open are served to their end, for the patience at most and until `stop` is asked for;
  // meanwhile they do not count against the bounds of the new ones. Blocks until then.
  base::Result<base::Done> renew(const base::Certified& identity, const std::stop_token& stop = {});

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace net
