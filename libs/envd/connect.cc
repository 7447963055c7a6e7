#include "libs/envd/connect.h"

#include <array>
#include <cstdint>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace envd {
namespace {

using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr std::size_t kPrefixBytes = 5;
constexpr unsigned char kCompressed = 1, kEndOfStream = 2;

ErrorCode code_of_word(std::string_view word) {
  if (word == "unauthenticated" || word == "permission_denied") return ErrorCode::kDenied;
  if (word == "not_found") return ErrorCode::kNotFound;
  if (word == "already_exists" || word == "aborted") return ErrorCode::kConflict;
  if (word == "resource_exhausted") return ErrorCode::kRateLimited;
  if (word == "invalid_argument" || word == "failed_precondition" || word == "out_of_range" ||
      word == "unimplemented")
    return ErrorCode::kInvalid;
  return ErrorCode::kUnavailable;  // unavailable, deadline_exceeded, internal, unknown, …
}

// A 409 is the edge's: the sandbox is still changing its state.
ErrorCode code_of_status(int status) {
  return status == 409 ? ErrorCode::kUnavailable : net::code_of_status(status);
}

std::string after_semicolon(std::string_view advice) {
  return advice.empty() ? "" : "; " + std::string(advice);
}

// A reply of the edge names the sandbox; with a port, it runs and only the port is closed.
base::Error edge_error(std::string_view what, const net::Response& response, const Json& body,
                       std::string_view advice) {
  const std::string id = net::tame(base::text_at(body, "sandboxId").value_or("?"));
  const ErrorCode code = response.status == 401 || response.status == 403 ? ErrorCode::kDenied
                         : response.status == 429                         ? ErrorCode::kRateLimited
                                                                          : ErrorCode::kUnavailable;
  std::string message = std::string(what) + ": the edge answered " +
                        std::to_string(response.status) + ": sandbox " + id;
  if (base::integer_at(body, "port"))
    message += " runs, but port " + std::to_string(*base::integer_at(body, "port")) + " is closed";
  else if (response.status == 502 || response.status == 404)
    message += " is not running";
  else
    message += ": " + net::tame(base::text_at(body, "message").value_or("no reason given"));
  const bool lost = response.status == 400 || response.status == 404;
  return {code, std::move(message) + (lost ? after_semicolon(advice) : "")};
}

// Health never refuses. A service refuses in words, but for a token (401) and for a protocol that
// it does not speak (415); the files refuse in numbers.
bool is_envds(Side side, int status, const Json& body) {
  const bool number = base::integer_at(body, "code").has_value();
  switch (side) {
    case Side::kHealth:
      return false;
    case Side::kFiles:
      return number;
    case Side::kServices:
      return base::text_at(body, "code") || status == 415 || (status == 401 && number);
  }
  return false;
}

std::uint32_t length_at(std::string_view bytes) {
  std::uint32_t length = 0;
  for (int i = 1; i <= 4; ++i)
    length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return length;
}

Result<std::string> bytes_at(const Json& object, const char* key) {
  const auto text = base::text_at(object, key);
  if (!text) return std::string();
  auto bytes = base::from_base64(*text);
  if (!bytes) return error(ErrorCode::kUnavailable, key, " is not base64");
  return bytes;
}

std::array<std::int64_t, 3> numbers_of(std::string_view version) {
  std::array<std::int64_t, 3> numbers{};
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto parts = base::split(version.substr(0, version.find_first_of("-+")), '.');
  for (std::size_t i = 0; i < numbers.size() && i < parts.size(); ++i)
    numbers[i] = base::parse_integer(parts[i]).value_or(0);
  return numbers;
}

}  // namespace

std::string encode_envelope(std::string_view payload) {
  std::string bytes(kPrefixBytes, '\0');
  for (std::size_t i = 0; i < 4; ++i)
    bytes[4 - i] = static_cast<char>(payload.size() >> (8 * i) & 0xff);
  return bytes.append(payload);
}

Result<std::vector<Envelope>> EnvelopeDecoder::add(std::string_view bytes) {
  rest_.append(bytes);
  std::vector<Envelope> whole;
  std::size_t at = 0;
  while (rest_.size() - at >= kPrefixBytes) {
    const std::string_view ahead = std::string_view(rest_).substr(at);
    const auto flags = static_cast<unsigned char>(ahead[0]);
    const std::size_t length = length_at(ahead);
    if (ended_) return error(ErrorCode::kUnavailable, "a stream goes on after its end");
    if (flags & ~kEndOfStream)
      return error(ErrorCode::kUnavailable, flags & kCompressed ? "a stream is compressed, unasked"
                                                                : "a stream has unknown flags");
    if (length > kEnvelopeBytesMax)
      return error(ErrorCode::kUnavailable, "a message of ", std::to_string(length),
                   " bytes is too long");
    if (ahead.size() < kPrefixBytes + length) break;
    ended_ = flags & kEndOfStream;
    whole.push_back({ended_, std::string(ahead.substr(kPrefixBytes, length))});
    at += kPrefixBytes + length;
  }
  rest_.erase(0, at);
  return whole;
}

base::Error error_of(std::string_view what, const net::Response& response, Side side,
                     std::string_view advice) {
  const auto parsed = base::parse_json(response.body);
  const Json body = parsed && parsed->is_object() ? *parsed : Json::object();
  if (base::text_at(body, "sandboxId")) return edge_error(what, response, body, advice);
  const std::string message = net::tame(base::text_at(body, "message").value_or(""));
  const auto word = base::text_at(body, "code");
  if (!is_envds(side, response.status, body))
    return error_of_stranger(what, response.status, message, advice);
  const ErrorCode code = word ? code_of_word(*word) : code_of_status(response.status);
  return error(code, what, ": envd answered ", std::to_string(response.status),
               word ? " " + net::tame(*word) : std::string(), message.empty() ? "" : ": ", message);
}

base::Error error_of_stranger(std::string_view what, int status, std::string_view message,
                              std::string_view advice) {
  const ErrorCode code = status == 429 ? ErrorCode::kRateLimited : ErrorCode::kUnavailable;
  return error(code, what, ": neither envd nor an edge that knows the sandbox answered, but ",
               std::to_string(status), " came back", message.empty() ? "" : ": ", message,
               after_semicolon(advice));
}

std::optional<base::Error> error_in_end(std::string_view what, std::string_view payload) {
  const auto end = base::parse_json(payload);
  if (!end || !end->is_object())
    return error(ErrorCode::kUnavailable, what, ": the stream's end is not JSON");
  const Json* failed = base::object_at(*end, "error");
  if (!failed) return std::nullopt;
  const std::string word = base::text_at(*failed, "code").value_or("unknown");
  return error(code_of_word(word), what, ": ", net::tame(word), ": ",
               net::tame(base::text_at(*failed, "message").value_or("no reason given")));
}

Result<ProcessEvent> read_process_event(std::string_view payload) {
  const auto message = base::parse_json(payload);
  if (!message || !message->is_object())
    return error(ErrorCode::kUnavailable, "an event is not a JSON object");
  ProcessEvent event;
  const Json* body = base::object_at(*message, "event");
  if (!body) return event;
  if (const Json* start = base::object_at(*body, "start"))
    event.pid = static_cast<std::uint32_t>(base::integer_at(*start, "pid").value_or(0));
  if (const Json* data = base::object_at(*body, "data")) {
    TRY(event.output, bytes_at(*data, "stdout"));
    TRY(event.error_output, bytes_at(*data, "stderr"));
  }
  if (const Json* end = base::object_at(*body, "end")) {
    // A zero is left out, and so is false.
    const auto code = base::integer_at(*end, "exitCode");
    const auto older = base::integer_at(*end, "exit_code");
    event.end = {static_cast<int>(code.value_or(older.value_or(0))),
                 base::text_at(*end, "status").value_or("")};
    if (!base::bool_at(*end, "exited").value_or(false)) event.end->exit_code = -1;
  }
  return event;
}

bool version_at_least(std::string_view version, std::string_view wanted) {
  return numbers_of(version) >= numbers_of(wanted);
}

}  // namespace envd
