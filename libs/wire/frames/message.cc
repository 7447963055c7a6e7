#include "libs/wire/frames/message.h"

#include <array>
#include <cassert>
#include <iterator>
#include <utility>

#include "libs/base/strings.h"
#include "libs/wire/words.h"

namespace wire {
namespace {

constexpr Text kShortText{0, 256};
constexpr Text kLongText{0, 1024};
constexpr Text kWord{1, 64};
constexpr Text kToken{1, kTokenBytesMax};
constexpr Text kHex32{32, 32};
constexpr Text kHex64{64, 64};
constexpr Name kFolder{1, 4096};
constexpr Number kCount;
constexpr Number kPositive{1};
constexpr Id kId;
constexpr Flag kFlag;
constexpr List kFeatures{64, kWord};

constexpr std::pair<FailureCode, std::string_view> kFailureCodes[] = {
    {FailureCode::kFsNotFound, "FS_NOT_FOUND"},
    {FailureCode::kFsNotDirectory, "FS_NOT_DIRECTORY"},
    {FailureCode::kFsNotText, "FS_NOT_TEXT"},
    {FailureCode::kFsNotRegularFile, "FS_NOT_REGULAR_FILE"},
    {FailureCode::kFsTooLarge, "FS_TOO_LARGE"},
    {FailureCode::kFsPermissionDenied, "FS_PERMISSION_DENIED"},
    {FailureCode::kFsSandboxDenied, "FS_SANDBOX_DENIED"},
    {FailureCode::kFsIoError, "FS_IO_ERROR"},
    {FailureCode::kFsStaleVersion, "FS_STALE_VERSION"},
    {FailureCode::kFsNotObserved, "FS_NOT_OBSERVED"},
    {FailureCode::kFsAmbiguousEdit, "FS_AMBIGUOUS_EDIT"},
    {FailureCode::kFsEditNotFound, "FS_EDIT_NOT_FOUND"},
    {FailureCode::kFsAborted, "FS_ABORTED"},
    {FailureCode::kInvalid, "INVALID"},
    {FailureCode::kDenied, "DENIED"},
    {FailureCode::kNotFound, "NOT_FOUND"},
    {FailureCode::kConflict, "CONFLICT"},
    {FailureCode::kBusy, "BUSY"},
    {FailureCode::kUnsupported, "UNSUPPORTED"},
    {FailureCode::kCancelled, "CANCELLED"},
    {FailureCode::kUnavailable, "UNAVAILABLE"},
    {FailureCode::kLost, "LOST"},
    {FailureCode::kSpawnFailed, "SPAWN_FAILED"},
    {FailureCode::kExecutableNotFound, "EXECUTABLE_NOT_FOUND"},
    {FailureCode::kTerminateFailed, "TERMINATE_FAILED"},
    {FailureCode::kConfinementUnavailable, "CONFINEMENT_UNAVAILABLE"},
    {FailureCode::kToolMissing, "TOOL_MISSING"},
    {FailureCode::kRepliesFull, "REPLIES_FULL"},
    {FailureCode::kOutOfSequence, "OUT_OF_SEQUENCE"},
    {FailureCode::kAlreadyAnswered, "ALREADY_ANSWERED"},
    {FailureCode::kOutcomeUnknown, "OUTCOME_UNKNOWN"},
    {FailureCode::kInternal, "INTERNAL"},
};

constexpr std::pair<CloseReason, std::string_view> kCloseReasons[] = {
    {CloseReason::kEnd, "end"},           {CloseReason::kQuiesce, "quiesce"},
    {CloseReason::kReplaced, "replaced"}, {CloseReason::kExpired, "expired"},
    {CloseReason::kDenied, "denied"},     {CloseReason::kVersion, "version"},
    {CloseReason::kBusy, "busy"},         {CloseReason::kShutdown, "shutdown"},
    {CloseReason::kLost, "lost"},         {CloseReason::kSilent, "silent"},
    {CloseReason::kProtocol, "protocol"}, {CloseReason::kImpostor, "impostor"},
    {CloseReason::kOther, "other"},
};

constexpr std::pair<NotResumed, std::string_view> kWhys[] = {{NotResumed::kUnknown, "unknown"},
                                                             {NotResumed::kLost, "lost"}};

constexpr Words<FailureCode> kFailureCode{kFailureCodes, FailureCode::kInternal};
constexpr Words<CloseReason> kCloseReason{kCloseReasons, CloseReason::kOther};
constexpr Words<NotResumed> kWhy{kWhys, NotResumed::kUnknown};
constexpr Words<Ceiling> kCeiling{kCeilingWords};

// An object of some detail, small enough to be held for a while.
struct Detail {
  base::Json write(const base::Json& object) const { return object; }
  base::Result<base::Json> read(const base::Json& json) const {
    if (json.is_object() && base::to_text(json).size() <= kDetailBytesMax) return json;
    return must_be("an object of at most " + std::to_string(kDetailBytesMax) + " bytes");
  }
};
constexpr Detail kDetail;

// [stream, received, limit] and, where it was seen, true for the end.
struct ReceivingRow {
  base::Json write(const Receiving& row) const {
    base::Json json = {row.stream, row.received, row.limit};
    if (row.ended) json.push_back(true);
    return json;
  }
  base::Result<Receiving> read(const base::Json& json) const {
    if (!json.is_array() || json.size() < 3 || json.size() > 4)
      return must_be("[stream, received, limit] with or without true");
    Receiving row;
    TRY(row.stream, kId.read(json[0]));
    TRY(row.received, kCount.read(json[1]));
    TRY(row.limit, kCount.read(json[2]));
    if (json.size() == 4) {
      TRY(row.ended, kFlag.read(json[3]));
    }
    return row;
  }
};
constexpr List kReceiving{kStreamsMax, ReceivingRow{}};

bool is_lower_hex(const std::string& text) {
  return text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Before it is parsed: a megabyte of brackets or commas would become many times that.
bool is_modest(std::string_view text) {
  std::size_t depth = 0, values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kHeaderDepthMax || ++values > kHeaderValuesMax) return false;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ',' && ++values > kHeaderValuesMax) {
      return false;
    }
  }
  return true;
}

}  // namespace

template <Is<Failure> Fields>
void fields(auto& visit, Fields& m) {
  visit("code", m.code, kFailureCode);
  visit("message", m.message, kLongText);
  visit.optional("retryAfterMs", m.retry_after_ms, kCount);
  visit.optional("detail", m.detail, kDetail);
}

template <Is<SandboxName> Fields>
void fields(auto& visit, Fields& m) {
  visit("namespace", m.space, kShortText);
  visit("name", m.name, kShortText);
}

template <Is<Versions> Fields>
void fields(auto& visit, Fields& m) {
  visit("min", m.min, kPositive);
  visit("max", m.max, kPositive);
  visit.judge(m.min <= m.max, "\"min\" is above \"max\"");
}

template <Is<Hello> Fields>
void fields(auto& visit, Fields& m) {
  visit("protocol", m.protocol, Inner<Versions>{});
  visit.with_default("client", m.client, std::string(), kShortText);
  visit.with_default("features", m.features, {}, kFeatures);
  visit.optional("sandbox", m.sandbox, Inner<SandboxName>{});
  visit.optional("uid", m.uid, kShortText);
  visit.optional("session", m.session, kHex32);
  visit.with_default("leaseSeconds", m.lease_seconds, std::int64_t{300},
                     Number{1, kLeaseSecondsMax});
  visit.optional("token", m.token, kToken);
  visit.optional("claims", m.claims, kToken);
  visit.optional("nonce", m.nonce, kHex32);
  visit.judge(!(m.token && m.claims), "\"token\" and \"claims\" exclude each other");
  visit.judge(m.claims.has_value() == m.nonce.has_value(), "\"claims\" and \"nonce\" go together");
  visit.judge(!m.nonce || is_lower_hex(*m.nonce), "\"nonce\" must be lower-case hexadecimal");
}

template <Is<Challenge> Fields>
void fields(auto& visit, Fields& m) {
  visit("nonce", m.nonce, kHex32);
  visit("proof", m.proof, kHex64);
  visit.judge(is_lower_hex(m.nonce), "\"nonce\" must be lower-case hexadecimal");
}

template <Is<Prove> Fields>
void fields(auto& visit, Fields& m) {
  visit("proof", m.proof, kHex64);
}

template <Is<Limits> Fields>
void fields(auto& visit, Fields& m) {
  visit("requests", m.requests, kPositive);
  visit("streams", m.streams, kPositive);
  visit("replies", m.replies, kPositive);
  visit("replyBytes", m.reply_bytes, kPositive);
  visit("firstBytes", m.first_bytes, kCount);
  visit("streamBytes", m.stream_bytes, kPositive);
}

template <Is<Welcome> Fields>
void fields(auto& visit, Fields& m) {
  visit("version", m.version, kPositive);
  visit("link", m.link, kWord);
  visit("session", m.session, kHex32);
  visit("resumed", m.resumed, kFlag);
  visit.optional("why", m.why, kWhy);
  visit("instance", m.instance, kWord);
  visit("uid", m.uid, kShortText);
  visit("epoch", m.epoch, kCount);
  visit("incarnation", m.incarnation, kCount);
  visit("cwd", m.cwd, kFolder);
  visit("workspaceRoot", m.workspace_root, kFolder);
  visit("ceiling", m.ceiling, kCeiling);
  visit("leaseMs", m.lease_ms, kCount);
  visit("expiresMs", m.expires_ms, kCount);
  visit("features", m.features, kFeatures);
  visit("limits", m.limits, Inner<Limits>{});
}

template <Is<Renew> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("token", m.token, kToken);
  visit.optional("claims", m.claims, kToken);
  visit.optional("proof", m.proof, kHex64);
  visit.judge(m.token.has_value() != m.claims.has_value(), "it has either \"token\" or \"claims\"");
  visit.judge(m.claims.has_value() == m.proof.has_value(), "\"claims\" and \"proof\" go together");
}

template <Is<Renewed> Fields>
void fields(auto& visit, Fields& m) {
  visit("ceiling", m.ceiling, kCeiling);
  visit("expiresMs", m.expires_ms, kCount);
}

template <Is<Resume> Fields>
void fields(auto& visit, Fields& m) {
  visit.with_default("link", m.link, std::string(), kWord);
  visit.with_default("requests", m.requests, {}, List{kRequestsMax, kId});
  visit("receiving", m.receiving, kReceiving);
}

template <Is<OpenedStream> Fields>
void fields(auto& visit, Fields& m) {
  visit("id", m.id, kId);
  visit.optional("limit", m.limit, kCount);
}

template <Is<Request> Fields>
void fields(auto& visit, Fields& m) {
  visit("op", m.op, kWord);
  visit("args", m.args, AnyObject{});
  visit.optional("seq", m.seq, kPositive);
  visit.optional("kept", m.kept, kCount);
  visit.with_default("up", m.up, false, kFlag);
  visit.optional("down", m.down, kCount);
  visit.with_default("streams", m.streams, {}, List{8, Inner<OpenedStream>{}});
  visit.optional("permissionMode", m.permission_mode, kCeiling);
  visit.optional("workspaceRoot", m.workspace_root, kFolder);
  visit.judge(m.up || (m.payload.empty() && !m.end), "bytes or an end without \"up\"");
  visit.judge(m.payload.size() <= kFirstBytesMax, "its first bytes are too many");
}

template <Is<Reply> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("ok", m.ok, AnyObject{});
  visit.optional("error", m.error, Inner<Failure>{});
  visit.judge(m.ok.has_value() != m.error.has_value(), "it has either \"ok\" or \"error\"");
  visit.judge(!m.error || (m.payload.empty() && !m.end), "bytes or an end with \"error\"");
}

template <Is<Data> Fields>
void fields(auto& visit, Fields& m) {
  visit("offset", m.offset, kCount);
  visit.optional("error", m.error, Inner<Failure>{});
  visit.judge(!m.error || m.end, "\"error\" without an end");
  visit.judge(!m.dropped || (m.payload.empty() && !m.end), "bytes or an end with what was dropped");
}

template <Is<Credit> Fields>
void fields(auto& visit, Fields& m) {
  visit("received", m.received, kCount);
  visit("limit", m.limit, kCount);
  visit.with_default("ended", m.ended, false, kFlag);
  visit.judge(m.received <= m.limit, "\"received\" is above \"limit\"");
}

template <typename Fields>
  requires Is<Fields, Stop> || Is<Fields, Cancel> || Is<Fields, Ping> || Is<Fields, Pong>
void fields(auto&, Fields&) {}

template <Is<Ack> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("through", m.through, kCount);
  visit.with_default("also", m.also, {}, List{kRepliesMax, kPositive});
  visit.optional("notices", m.notices, kCount);
}

template <Is<Notice> Fields>
void fields(auto& visit, Fields& m) {
  visit("number", m.number, kPositive);
  visit("kind", m.kind, kWord);
  visit("message", m.message, kLongText);
  visit.optional("detail", m.detail, kDetail);
}

template <Is<Close> Fields>
void fields(auto& visit, Fields& m) {
  visit("reason", m.reason, kCloseReason);
  visit.with_default("message", m.message, std::string(), kLongText);
  visit.optional("retryAfterMs", m.retry_after_ms, kCount);
}

WIRE_FIELDS(Failure)
WIRE_FIELDS(SandboxName)
WIRE_FIELDS(Versions)
WIRE_FIELDS(Limits)
WIRE_FIELDS(OpenedStream)

namespace {

base::Error refused(std::string_view name, std::string_view why) {
  return base::error(base::ErrorCode::kInvalid, name, " refused: ", why);
}

constexpr std::string_view kNames[] = {
    "hello", "challenge", "prove", "welcome", "renew", "renewed", "resume", "request", "reply",
    "data",  "credit",    "stop",  "cancel",  "ack",   "notice",  "ping",   "pong",    "close"};

base::Result<base::Json> header_of(const std::string& text) {
  using base::ErrorCode;
  if (text.empty()) return base::Json::object();
  if (!is_modest(text))
    return base::error(ErrorCode::kInvalid, "its header is too deep or holds too many values");
  auto header = base::parse_json(text);
  if (!header) return base::error(ErrorCode::kInvalid, "its header is not JSON");
  return header;
}

template <typename M>
base::Result<Message> read_message(Frame frame, std::string_view name) {
  M message;
  bool has_stream = false, may_end = false, may_drop = false, may_carry = false;
  if constexpr (requires { message.stream; }) {
    message.stream = frame.stream;
    has_stream = true;
  }
  if constexpr (requires { message.id; }) {
    message.id = frame.stream;
    has_stream = true;
  }
  if constexpr (requires { message.end; }) {
    message.end = frame.flags & kEndFlag;
    may_end = true;
  }
  if constexpr (requires { message.dropped; }) {
    message.dropped = frame.flags & kDroppedFlag;
    may_drop = true;
  }
  if constexpr (requires { message.payload; }) {
    message.payload = std::move(frame.payload);
    may_carry = true;
  }
  if (has_stream != (frame.stream != 0))
    return refused(name, has_stream ? "it has no stream" : "it has a stream");
  if ((frame.flags & kEndFlag && !may_end) || (frame.flags & kDroppedFlag && !may_drop))
    return refused(name, "it has a flag that is not its own");
  if (!may_carry && !frame.payload.empty()) return refused(name, "it has a payload");
  auto header = header_of(frame.header);
  if (!header) return refused(name, header.error().message);
  auto read = read_fields<M>(*header, std::move(message));
  if (!read) return refused(name, read.error().message);
  return Message(*std::move(read));
}

using ReadMessage = base::Result<Message> (*)(Frame, std::string_view);
template <std::size_t... kIndex>
constexpr std::array<ReadMessage, sizeof...(kIndex)> readers(std::index_sequence<kIndex...>) {
  return {&read_message<std::variant_alternative_t<kIndex, Message>>...};
}
constexpr auto kReaders = readers(std::make_index_sequence<std::variant_size_v<Message>>());
static_assert(kReaders.size() == std::size(kNames) &&
              kReaders.size() == static_cast<std::size_t>(FrameType::kClose));

}  // namespace

Failure failure(FailureCode code, std::string_view message) {
  return {code, std::string(base::cut(message, kLongText.bytes_max))};
}

std::string to_text(const SandboxName& sandbox) { return sandbox.space + "/" + sandbox.name; }

std::string_view to_word(FailureCode code) { return word_for(kFailureCodes, code); }
std::string_view to_word(NotResumed why) { return word_for(kWhys, why); }
std::string_view to_word(CloseReason reason) { return word_for(kCloseReasons, reason); }

Frame to_frame(Message message) {
  Frame frame{.type = static_cast<FrameType>(message.index() + 1)};
  std::visit(
      [&frame](auto& m) {
        const base::Json header = write_fields(m);
        if (!header.empty()) frame.header = base::to_text(header);
        if constexpr (requires { m.stream; }) frame.stream = m.stream;
        if constexpr (requires { m.id; }) frame.stream = m.id;
        if constexpr (requires { m.end; }) frame.flags |= m.end ? kEndFlag : 0;
        if constexpr (requires { m.dropped; }) frame.flags |= m.dropped ? kDroppedFlag : 0;
        if constexpr (requires { m.payload; }) frame.payload = std::move(m.payload);
      },
      message);
  return frame;
}

base::Result<Message> to_message(Frame frame) {
  const std::size_t index = static_cast<std::size_t>(frame.type) - 1;
  assert(index < kReaders.size());
  return kReaders[index](std::move(frame), kNames[index]);
}

}  // namespace wire
