#include "executor/envd/connect.h"

#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::size_t kEnvelopeHeadBytes = 5;

const struct {
  RpcCode code;
  std::string_view word;
  int status;
} kCodes[] = {
    {RpcCode::kCanceled, "canceled", 499},
    {RpcCode::kUnknown, "unknown", 500},
    {RpcCode::kInvalidArgument, "invalid_argument", 400},
    {RpcCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {RpcCode::kNotFound, "not_found", 404},
    {RpcCode::kAlreadyExists, "already_exists", 409},
    {RpcCode::kPermissionDenied, "permission_denied", 403},
    {RpcCode::kResourceExhausted, "resource_exhausted", 429},
    {RpcCode::kFailedPrecondition, "failed_precondition", 400},
    {RpcCode::kAborted, "aborted", 409},
    {RpcCode::kUnimplemented, "unimplemented", 501},
    {RpcCode::kInternal, "internal", 500},
    {RpcCode::kUnavailable, "unavailable", 503},
    {RpcCode::kUnauthenticated, "unauthenticated", 401},
};

RpcCode code_for(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalid:
      return RpcCode::kInvalidArgument;
    case base::ErrorCode::kDenied:
      return RpcCode::kPermissionDenied;
    case base::ErrorCode::kNotFound:
      return RpcCode::kNotFound;
    case base::ErrorCode::kConflict:
      return RpcCode::kAlreadyExists;
    case base::ErrorCode::kRateLimited:
      return RpcCode::kResourceExhausted;
    case base::ErrorCode::kCancelled:
      return RpcCode::kCanceled;
    case base::ErrorCode::kUnavailable:
      return RpcCode::kInternal;
  }
  return RpcCode::kInternal;
}

}  // namespace

std::string_view to_word(RpcCode code) {
  for (const auto& row : kCodes)
    if (row.code == code) return row.word;
  return "unknown";
}

int http_status(RpcCode code) {
  for (const auto& row : kCodes)
    if (row.code == code) return row.status;
  return 500;
}

RpcError::RpcError(base::Error error)
    : base::Error(std::move(error)), rpc_code(code_for(this->code)) {}

RpcError::RpcError(RpcCode code, std::string message)
    : base::Error{base::ErrorCode::kInvalid, std::move(message)}, rpc_code(code) {}

base::Json to_json(const RpcError& error) {
  return {{"code", to_word(error.rpc_code)}, {"message", error.message}};
}

std::string encode_envelope(std::uint8_t flags, std::string_view payload) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string bytes;
  bytes.reserve(kEnvelopeHeadBytes + payload.size());
  bytes += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xff);
  return bytes.append(payload);
}

std::string end_envelope(const std::optional<RpcError>& error) {
  base::Json end = base::Json::object();
  if (error) end["error"] = to_json(*error);
  return encode_envelope(kEnvelopeEnd, base::to_text(end));
}

RpcResult<std::optional<Envelope>> EnvelopeReader::next() {
  if (held_.size() < kEnvelopeHeadBytes) return std::optional<Envelope>();
  std::size_t size = 0;
  for (std::size_t i = 1; i < kEnvelopeHeadBytes; ++i)
    size = size << 8 | static_cast<std::uint8_t>(held_[i]);
  if (size > kEnvelopeBytesMax)
    return RpcError(RpcCode::kResourceExhausted,
                    "a message of " + std::to_string(size) + " bytes is larger than the " +
                        std::to_string(kEnvelopeBytesMax) + " allowed");
  const auto flags = static_cast<std::uint8_t>(held_[0]);
  if (flags & kEnvelopeCompressed)
    return RpcError(RpcCode::kInvalidArgument,
                    "a message is compressed, but this server offers no compression");
  if (held_.size() < kEnvelopeHeadBytes + size) return std::optional<Envelope>();
  Envelope envelope{flags, held_.substr(kEnvelopeHeadBytes, size)};
  held_.erase(0, kEnvelopeHeadBytes + size);
  return std::optional(std::move(envelope));
}

RpcResult<std::optional<base::Milliseconds>> parse_timeout(
    const std::optional<std::string>& header) {
  if (!header) return std::optional<base::Milliseconds>();
  const auto number = base::parse_integer(*header);
  if (header->size() > 10 || !number || *number < 0 || (*header)[0] == '+')
    return RpcError(RpcCode::kInvalidArgument,
                    "Connect-Timeout-Ms must be at most ten digits, not '" + *header + "'");
  return std::optional(base::Milliseconds(*number));
}

base::Milliseconds parse_keepalive(const std::optional<std::string>& header) {
  constexpr base::Seconds kUsual{90}, kLongest{86400};
  const auto seconds = base::parse_integer(header.value_or(""));
  if (!seconds || *seconds < 1 || *seconds > kLongest.count()) return kUsual;
  return base::Seconds(*seconds);
}

RpcContent content_kind(const std::optional<std::string>& content_type) {
  const std::string whole = content_type.value_or("");
  const std::string kind = base::lower(base::trim(whole.substr(0, whole.find(';'))));
  if (kind == "application/json") return RpcContent::kUnary;
  if (kind == "application/connect+json") return RpcContent::kStream;
  return RpcContent::kUnsupported;
}

}  // namespace executor
