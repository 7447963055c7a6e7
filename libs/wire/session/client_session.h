#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/frames/frame.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/handshake.h"
#include "libs/wire/session/pulse.h"
#include "libs/wire/session/stream_set.h"
#include "libs/wire/session/window.h"

namespace wire {

inline constexpr base::Milliseconds kOpenWithin{15'000};  // From dialling to the server's resume.

// Either a token that proves itself unseen, or one that is shown (nothing: none is needed).
using Credential = std::variant<SplitToken, std::optional<std::string>>;

struct ClientSettings {
  std::string name;  // For the server's log.
  std::vector<std::string> features = {};
  std::optional<SandboxName> sandbox = std::nullopt;
  std::int64_t lease_seconds = 300;
};

// What is asked for. Streams of its own: an upload, a download, and further ones by their way.
struct Call {
  std::string op = {};
  base::Json args = base::Json::object();
  bool mutating = false;
  bool up = false, down = false;
  std::vector<std::uint32_t> to_client = {}, to_server = {};  // From new_stream().
  std::optional<Ceiling> permission_mode = std::nullopt;
  std::optional<std::string> workspace_root = std::nullopt;
};
// Of a known operation; `how` has all but op and args.
template <typename Args>
Call call_of(const Args& args, Call how = {}) {
  how.op = Args::kOp;
  how.args = to_json(args);
  return how;
}

struct Welcomed {
  Welcome welcome;
};
struct Answered {  // Its download, if any, may go on.
  std::uint32_t id = 0;
  base::Json ok;
};
struct Failed {  // Its streams have ended.
  std::uint32_t id = 0;
  Failure failure;
};
struct StreamArrived {  // There is something to take.
  std::uint32_t stream = 0;
};
struct StreamRoom {
  std::uint32_t stream = 0;
};
struct StreamUnwanted {
  std::uint32_t stream = 0;
};
struct Noticed {
  Notice notice;
};
struct CredentialRenewed {
  Renewed renewed;
};
struct Closed {  // By the server, or by this side because of what the server did.
  Close close;
};
using ClientEvent = std::variant<Welcomed, Answered, Failed, StreamArrived, StreamRoom,
                                 StreamUnwanted, Noticed, CredentialRenewed, Closed>;

// The client's side of a session across links: what was asked and how far it came, so that after a
// cut each request is asked again that may be, and each stream goes on where it was. Pure: frames
// and times in, events and frames out. One link at a time: dial, receive and next, then cut.
class ClientSession {
 public:
  explicit ClientSession(ClientSettings settings);

  // Links. `nonce` is fresh (new_nonce in proof.h).
  void dial(Credential credential, std::string nonce, base::Moment now);
  void receive(Frame frame, base::Moment now);
  std::optional<Frame> next();
  bool over() const { return !linked_; }  // Once next() has nothing more, hang up.
  void cut();
  void tick(base::Moment now);
  void renew(Credential credential);  // For the link that is open.
  // This side goes on with another session: what was asked in this one fails, since it may be what
  // it broke by, and may have been done or not if it mutates and was sent.
  void abandon(const Failure& why);
  void finish();  // The session ends, and with it what it has begun.

  std::vector<ClientEvent> take_events() { return std::exchange(events_, {}); }

  // Requests. kRateLimited: too many wait; kInvalid: too long for a frame.
  base::Result<std::uint32_t> ask(Call call);
  std::uint32_t new_stream() { return ++last_id_; }
  void cancel(std::uint32_t id);

  // Streams, its requests' own by the request's id.
  std::size_t room(std::uint32_t stream) const { return streams_.room(stream); }
  void append(std::uint32_t stream, std::string_view bytes);
  void end(std::uint32_t stream);
  std::optional<Piece> take(std::uint32_t stream, std::size_t bytes_max = kChunkBytes) {
    return streams_.take(stream, bytes_max);
  }
  void stop(std::uint32_t stream) { streams_.stop(stream); }

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t streams_open() const { return streams_.size(); }
  std::size_t stream_bytes_held() const { return streams_.held(); }

 private:
  enum class Phase { kDialled, kChallenged, kWelcomed, kOpen };
  struct Waiting {
    Call call;
    std::optional<std::int64_t> seq;  // Of a mutating one, once it was sent.
    bool sent = false;                // In this session.
    bool cancelled = false;
  };

  void receive(Message message);
  void shake_hands(Message message);
  void receive(Welcome welcome);
  void receive(const Resume& resume);
  void receive(Reply reply);
  void receive_in_session(Message message);
  void close(CloseReason reason, std::string_view message);
  void begin_link();  // What is true of this link only begins.
  void begin_session();
  std::optional<Message> next_message();
  std::optional<Request> next_request();
  bool fits_the_window(const Waiting& waiting) const;
  bool belongs_to_unsent(std::uint32_t stream) const;
  Request to_request(std::uint32_t id, Waiting& waiting);
  Resume resume();
  void fail(std::uint32_t id, Failure failure);
  void forget_streams(std::uint32_t id, const Call& call);
  std::int64_t first_bytes() const;
  std::map<std::uint32_t, std::int64_t> first_credit() const;

  ClientSettings settings_;
  StreamSet streams_;
  std::map<std::uint32_t, Waiting> waiting_;  // For a reply, in the order in which they were asked.
  std::set<std::uint32_t> unsent_;            // Of those, on this link.
  std::set<std::uint32_t> to_cancel_;
  std::uint32_t last_id_ = 0;
  std::vector<ClientEvent> events_;

  // The session.
  std::optional<std::string> session_, uid_;
  std::string instance_;  // The executor that has it.
  Limits limits_;
  Window window_;

  // The link.
  bool linked_ = false, resume_due_ = false;
  bool ping_due_ = false, pong_due_ = false;
  Phase phase_ = Phase::kDialled;
  std::string link_;
  Credential credential_;
  Nonces nonces_;
  base::Moment dialled_;
  Pulse pulse_{base::Moment{}};
  std::optional<Message> word_;  // Of the handshake, or a renewal.
  std::optional<Close> close_;
};

}  // namespace wire
