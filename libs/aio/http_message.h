#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/aio/stream.h"

// HTTP/1.1 messages over a Stream: what the server, the client and forwarding share. Private to
// libs/aio.
namespace aio {

inline constexpr std::size_t kPieceBytes = 64u << 10;  // Of a body, read and sent on at once.

// Bytes read ahead from a stream, at most `bytes_max` of them; it takes memory as they come.
class Input {
 public:
  Input(std::shared_ptr<Stream> stream, std::size_t bytes_max);
  std::string_view ready() const;
  void consume(std::size_t count);
  std::uint64_t consumed() const { return consumed_; }  // Since the stream began.
  bool full() const;
  // Reads more behind what is ready: 0 at the end of the stream. Not when full.
  Task<base::Result<std::size_t>> fill();
  void give_back();  // The memory, while nothing is ready.
  Stream& stream() { return *stream_; }

 private:
  void make_room();

  std::shared_ptr<Stream> stream_;
  const std::size_t bytes_max_;
  std::vector<char> bytes_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t consumed_ = 0;
  bool more_came_ = false;  // The last read filled all the room it had.
};

struct MessageHead {
  std::string method, target;  // Of a request.
  int status = 0;              // Of a response.
  HttpFields fields;
  bool http_1_1 = true;
  bool keep_alive = true;
  bool chunked = false;
  bool without_body = false;
  std::optional<std::uint64_t> content_length;
};

// Why a head could not be read; kEnded when the stream ended between messages.
enum class HeadFault { kNone, kEnded, kBroken, kMalformed, kTooLarge };

// Reads one message: its head once, then its body in pieces.
class MessageReader {
 public:
  virtual ~MessageReader() = default;
  virtual Task<HeadFault> read_head(Input& input) = 0;
  virtual MessageHead head() const = 0;
  // More than so much of the body that is still to come is an error, at once where a chunk says
  // that it is longer.
  virtual void limit_body(std::uint64_t bytes_max) = 0;
  // Up to `size` bytes; 0 at the end of the body.
  virtual Task<base::Result<std::size_t>> read_body(Input& input, char* buffer,
                                                    std::size_t size) = 0;
  virtual bool done() const = 0;
};
base::Error body_too_large(std::uint64_t bytes_max);

std::unique_ptr<MessageReader> make_request_reader(std::size_t head_bytes_max);
// `to_head`: the reply to a HEAD request, which has no body whatever its fields say.
std::unique_ptr<MessageReader> make_response_reader(std::size_t head_bytes_max, bool to_head);

inline constexpr int kInterimRepliesMax = 64;
// Reads heads until the reply's own and hands back what reads its body. Interim replies (1xx, but
// for 101, the last word of HTTP) are passed over: a client may ignore those it does not expect,
// and of intermediaries only a proxy, which its client chose, must forward them; ours is a gateway
// (RFC 9110 §15.2, §3.7). More of them than the maximum, or more than `heads_bytes_max` of all
// heads, is an error: a server could send them without end. Errors: kUnavailable, with what the
// server did.
Task<base::Result<std::unique_ptr<MessageReader>>> read_reply_head(Input& input,
                                                                   std::size_t heads_bytes_max,
                                                                   bool to_head);

std::string reason_phrase(int status);
// The field as a line; line breaks inside the value become spaces.
std::string field_line(std::string_view name, std::string_view value);
std::string chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::optional<std::string> find_field(const HttpFields& fields, std::string_view name);
// Without those that speak of one connection: Connection and what it names, Keep-Alive, Proxy-*,
// TE, Trailer, Transfer-Encoding, Upgrade (RFC 9110 §7.6.1).
HttpFields end_to_end(const HttpFields& fields);
bool asks_for_upgrade(const HttpFields& fields);

}  // namespace aio
