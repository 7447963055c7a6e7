#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace aio {

class Stream;

using HttpFields = std::vector<std::pair<std::string, std::string>>;  // In order; names as sent.

struct HttpHead {
  std::string method;
  std::string target;  // As sent: path and query.
  HttpFields fields;

  std::string path() const;  // Percent-decoded, without the query.
  std::optional<std::string> query(
      std::string_view name) const;  // Decoded ('+' is a space); the first of that name.
  std::optional<std::string> field(std::string_view name) const;  // Without regard to case.
};

struct HttpReply {
  int status = 200;
  HttpFields fields = {};
  std::string body = {};
};

// One request on its way to one reply. The handler reads the body (or not), then replies once:
// whole, or begin/write.../finish. Errors: kUnavailable when the peer is gone, kInvalid for a bad
// or too large body.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpHead& head() const = 0;
  virtual std::string peer() const = 0;  // "127.0.0.1:40312", for logs.
  // What this request came over. It goes on to carry those that follow, until the peer or the
  // server closes it; a reset ends it and the request on it.
  virtual std::weak_ptr<Stream> connection() const = 0;

  // Up to `size` bytes of the body (Content-Length or chunked); 0 at its end.
  virtual Task<base::Result<std::size_t>> read(char* buffer, std::size_t size) = 0;
  virtual Task<base::Result<std::string>> read_all(std::size_t bytes_max) = 0;

  virtual Task<base::Result<base::Done>> reply(HttpReply reply) = 0;
  // A chunked reply; each write is on the wire when it returns, and waits while the peer does not
  // read.
  virtual Task<base::Result<base::Done>> begin(int status, HttpFields fields) = 0;
  virtual Task<base::Result<base::Done>> write(std::string bytes) = 0;
  virtual Task<base::Result<base::Done>> finish() = 0;
  // Resolves when the peer closes its side or the connection breaks; for streams that only write.
  // Not while a read is in hand: a connection has one reader at a time.
  virtual Task<> wait_for_disconnect() = 0;

  // Sends this request on over `upstream`, a fresh connection, and streams the reply back: each
  // piece at once, bodies of any size both ways in bounded memory, an upgrade (101) as raw bytes
  // until both sides ended. Hop-by-hop fields stay behind. kUnavailable: upstream failed before
  // anything was sent back, so that replying is still the caller's. kCancelled: the peer left or
  // the reply broke off; this connection is closed, and so is upstream.
  virtual Task<base::Result<base::Done>> forward(std::shared_ptr<Stream> upstream) = 0;
  // Takes the connection away, unanswered, for another protocol: its descriptor, and what the peer
  // has sent ahead. Nothing of HTTP comes any more. kInvalid: it was answered.
  struct TakenConnection {
    base::Fd fd;
    std::string ahead;
  };
  virtual base::Result<TakenConnection> take_connection() = 0;
  // From now on the connection breaks where a reply would begin: what the request asked for
  // happens, and its peer never learns of it.
  virtual void lose_reply() = 0;
  // Breaks the connection at once (a TCP peer sees a reset), and what forward() connected it to.
  // For a cut or a reply that is meant to be lost; nothing can be replied afterwards.
  virtual void abort() = 0;
};

struct HttpLimits {
  std::size_t head_bytes_max = 64u << 10;
  // From the first byte of a request to the end of its head; and, for the first request of a
  // connection, to its first byte.
  base::Milliseconds head_timeout{10'000};
  base::Milliseconds idle_timeout{620'000};  // Between requests of one connection.
  // A newcomer beyond them takes the place of the connection that has waited longest for a request
  // or the rest of its head; when every one has a request at work, it is answered 503.
  std::size_t connections_max = 4096;
};
// For one of the servers of a process that may have so many descriptors open at once: most are
// left for what requests lead to.
HttpLimits limits_within(std::size_t descriptors);

// An HTTP/1.1 server on one event loop: keep-alive, chunked bodies both ways, 100-continue, bounds
// on all of it. A handler that returns without a reply answers 500; one whose peer leaves is
// cancelled only by its own next read or write.
class HttpServer {
 public:
  using Handler = std::function<Task<>(std::shared_ptr<HttpExchange>)>;

  HttpServer(Executor executor, Handler handler, HttpLimits limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Port 0 picks a free one; the port in use comes back. Starts to accept at once.
  base::Result<int> listen(const std::string& address, int port);
  void stop();  // No more connections; those open are closed.

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace aio
