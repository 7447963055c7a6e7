#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"
#include "libs/wire/frames/fields.h"
#include "libs/wire/frames/frame.h"
#include "libs/wire/token.h"

// What frames mean: docs/protocol.md in types, with every limit that stands there.
namespace wire {

inline constexpr std::int64_t kProtocolVersion = 1;
inline constexpr std::size_t kHeaderValuesMax = 65'536;
inline constexpr std::size_t kHeaderDepthMax = 16;
inline constexpr std::size_t kTokenBytesMax = 8'192;  // That is shown.
inline constexpr std::size_t kStreamsMax = 512;       // Open at once, in a session.
inline constexpr std::size_t kRequestsMax = 256;      // Unanswered at once, in a session.
inline constexpr std::size_t kRepliesMax = 256;       // Kept without an acknowledgement.
inline constexpr std::size_t kReplyBytesMax = 32u << 20;
inline constexpr std::size_t kFirstBytesMax = 64u << 10;   // Of an upload, without credit.
inline constexpr std::size_t kStreamBytesMax = 1u << 20;   // Held of a stream, on either side.
inline constexpr std::size_t kDetailBytesMax = 16u << 10;  // Of a failure or a notice.
inline constexpr std::int64_t kLeaseSecondsMax = 3600;

enum class FailureCode {
  kFsNotFound,
  kFsNotDirectory,
  kFsNotText,
  kFsNotRegularFile,
  kFsTooLarge,
  kFsPermissionDenied,
  kFsSandboxDenied,
  kFsIoError,
  kFsStaleVersion,
  kFsNotObserved,
  kFsAmbiguousEdit,
  kFsEditNotFound,
  kFsAborted,
  kInvalid,
  kDenied,
  kNotFound,
  kConflict,
  kBusy,  // Nothing was done; the same may be asked again.
  kUnsupported,
  kCancelled,
  kUnavailable,
  kLost,
  kSpawnFailed,
  kExecutableNotFound,
  kTerminateFailed,
  kConfinementUnavailable,
  kToolMissing,  // Its detail says which program is to be sent.
  kRepliesFull,
  kOutOfSequence,
  kAlreadyAnswered,
  kOutcomeUnknown,
  kInternal,  // And what a later version may say.
};
std::string_view to_word(FailureCode code);

struct Failure {
  FailureCode code = FailureCode::kInternal;
  std::string message;
  std::optional<std::int64_t> retry_after_ms = std::nullopt;
  std::optional<base::Json> detail = std::nullopt;
  bool operator==(const Failure&) const = default;
};

Failure failure(FailureCode code, std::string_view message);  // Cut to what fits.

struct SandboxName {
  std::string space, name;
  bool operator==(const SandboxName&) const = default;
};
std::string to_text(const SandboxName& sandbox);  // "namespace/name"

struct Versions {
  std::int64_t min = kProtocolVersion, max = kProtocolVersion;
  bool operator==(const Versions&) const = default;
};

struct Hello {
  Versions protocol = {};
  std::string client = {};
  std::vector<std::string> features = {};
  std::optional<SandboxName> sandbox = std::nullopt;
  std::optional<std::string> uid = std::nullopt;  // And no other sandbox, whatever its name.
  std::optional<std::string> session = std::nullopt;
  std::int64_t lease_seconds = 300;
  std::optional<std::string> token = std::nullopt;                         // To be shown, or
  std::optional<std::string> claims = std::nullopt, nonce = std::nullopt;  // to be proven.
  bool operator==(const Hello&) const = default;
};

struct Challenge {
  std::string nonce, proof;
  bool operator==(const Challenge&) const = default;
};

struct Prove {
  std::string proof;
  bool operator==(const Prove&) const = default;
};

struct Limits {
  std::int64_t requests = kRequestsMax;
  std::int64_t streams = kStreamsMax;
  std::int64_t replies = kRepliesMax;
  std::int64_t reply_bytes = kReplyBytesMax;
  std::int64_t first_bytes = kFirstBytesMax;
  std::int64_t stream_bytes = kStreamBytesMax;
  bool operator==(const Limits&) const = default;
};

enum class NotResumed { kUnknown, kLost };
std::string_view to_word(NotResumed why);

struct Welcome {
  std::int64_t version = kProtocolVersion;
  std::string link;  // Another one each time; the resume that answers repeats it.
  std::string session;
  bool resumed = false;
  std::optional<NotResumed> why = std::nullopt;
  std::string instance, uid;
  std::int64_t epoch = 0, incarnation = 0;
  std::string cwd, workspace_root;
  Ceiling ceiling = Ceiling::kReadOnly;
  std::int64_t lease_ms = 0;
  std::int64_t expires_ms = 0;  // 0: never.
  std::vector<std::string> features = {};
  Limits limits = {};
  bool operator==(const Welcome&) const = default;
};

struct Renew {
  std::optional<std::string> token = std::nullopt;
  std::optional<std::string> claims = std::nullopt, proof = std::nullopt;
  bool operator==(const Renew&) const = default;
};

struct Renewed {
  Ceiling ceiling = Ceiling::kReadOnly;
  std::int64_t expires_ms = 0;
  bool operator==(const Renewed&) const = default;
};

// How far a stream came on the side that receives it.
struct Receiving {
  std::uint32_t stream = 0;
  std::int64_t received = 0, limit = 0;
  bool ended = false;
  bool operator==(const Receiving&) const = default;
};

struct Resume {
  std::string link = {};  // From a client.
  std::vector<std::uint32_t> requests = {};
  std::vector<Receiving> receiving = {};
  bool operator==(const Resume&) const = default;
};

struct OpenedStream {
  std::uint32_t id = 0;
  std::optional<std::int64_t> limit = std::nullopt;  // It runs to the client, up to there.
  bool operator==(const OpenedStream&) const = default;
};

struct Request {
  std::uint32_t id = 0;
  std::string op;
  base::Json args = base::Json::object();
  std::optional<std::int64_t> seq = std::nullopt;  // It is mutating.
  std::optional<std::int64_t> kept = std::nullopt;
  bool up = false;
  std::optional<std::int64_t> down = std::nullopt;
  std::vector<OpenedStream> streams = {};
  std::optional<Ceiling> permission_mode = std::nullopt;
  std::optional<std::string> workspace_root = std::nullopt;
  std::string payload = {};
  bool end = false;
  bool operator==(const Request&) const = default;
};

struct Reply {
  std::uint32_t id = 0;
  std::optional<base::Json> ok = std::nullopt;  // Or
  std::optional<Failure> error = std::nullopt;
  std::string payload = {};
  bool end = false;
  bool operator==(const Reply&) const = default;
};

struct Data {
  std::uint32_t stream = 0;
  std::int64_t offset = 0;
  std::string payload = {};
  bool end = false;
  bool dropped = false;
  std::optional<Failure> error = std::nullopt;
  bool operator==(const Data&) const = default;
};

struct Credit {
  std::uint32_t stream = 0;
  std::int64_t received = 0, limit = 0;
  bool ended = false;
  bool operator==(const Credit&) const = default;
};

struct Stop {
  std::uint32_t stream = 0;
  bool operator==(const Stop&) const = default;
};

struct Cancel {
  std::uint32_t id = 0;
  bool operator==(const Cancel&) const = default;
};

struct Ack {
  std::optional<std::int64_t> through = std::nullopt;
  std::vector<std::int64_t> also = {};
  std::optional<std::int64_t> notices = std::nullopt;
  bool operator==(const Ack&) const = default;
};

struct Notice {
  std::int64_t number = 0;
  std::string kind, message;
  std::optional<base::Json> detail = std::nullopt;
  bool operator==(const Notice&) const = default;
};

struct Ping {
  bool operator==(const Ping&) const = default;
};
struct Pong {
  bool operator==(const Pong&) const = default;
};

enum class CloseReason {
  kEnd,
  kQuiesce,
  kReplaced,
  kExpired,
  kDenied,
  kVersion,
  kBusy,
  kShutdown,
  kLost,
  kSilent,
  kProtocol,
  kImpostor,
  kOther,  // What a later version may say.
};
std::string_view to_word(CloseReason reason);

struct Close {
  CloseReason reason = CloseReason::kOther;
  std::string message = {};
  std::optional<std::int64_t> retry_after_ms = std::nullopt;
  bool operator==(const Close&) const = default;
};

// In the order of their frames' types.
using Message = std::variant<Hello, Challenge, Prove, Welcome, Renew, Renewed, Resume, Request,
                             Reply, Data, Credit, Stop, Cancel, Ack, Notice, Ping, Pong, Close>;

// Whoever makes a message keeps to the limits of its sizes.
Frame to_frame(Message message);
// kInvalid: the frame is none of this protocol, or breaks a limit.
base::Result<Message> to_message(Frame frame);

}  // namespace wire
