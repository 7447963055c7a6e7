#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

// The Connect protocol (connectrpc.com) in JSON, without compression: what stands on the wire.
namespace executor {

enum class RpcCode {
  kCanceled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kUnauthenticated,
};
std::string_view to_word(RpcCode code);
int http_status(RpcCode code);

// A failure that names its Connect code; one from elsewhere gets the code that fits its kind.
struct RpcError : base::Error {
  RpcCode rpc_code;

  RpcError(base::Error error);
  RpcError(RpcCode code, std::string message);
};

template <typename T>
using RpcResult = base::Result<T, RpcError>;

base::Json to_json(const RpcError& error);

// One message of a stream: flags, 4 bytes of big-endian length, payload.
inline constexpr std::uint8_t kEnvelopeCompressed = 1;
inline constexpr std::uint8_t kEnvelopeEnd = 2;
inline constexpr std::size_t kEnvelopeBytesMax = 16u << 20;

struct Envelope {
  std::uint8_t flags = 0;
  std::string payload;
};
std::string encode_envelope(std::uint8_t flags, std::string_view payload);
std::string end_envelope(const std::optional<RpcError>& error);

// Takes whole envelopes off a body that arrives in parts.
class EnvelopeReader {
 public:
  void add(std::string_view bytes) { held_.append(bytes); }
  // Nothing: more is needed. invalid_argument: compressed; resource_exhausted: too large.
  RpcResult<std::optional<Envelope>> next();
  bool empty() const { return held_.empty(); }

 private:
  std::string held_;
};

// Connect-Timeout-Ms: up to ten digits; 0 has already passed.
RpcResult<std::optional<base::Milliseconds>> parse_timeout(
    const std::optional<std::string>& header);
// Keepalive-Ping-Interval in seconds; anything but 1 to a day means the usual 90.
base::Milliseconds parse_keepalive(const std::optional<std::string>& header);

enum class RpcContent { kUnary, kStream, kUnsupported };
RpcContent content_kind(const std::optional<std::string>& content_type);

}  // namespace executor
