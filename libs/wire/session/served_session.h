#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libs/base/result.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/session/stream_set.h"

namespace wire {

inline constexpr std::size_t kNoticesMax = 64;
inline constexpr std::size_t kUnreadMax = 1024;             // Replies that a peer does not read.
inline constexpr std::size_t kReplyBytesUsual = 16u << 10;  // Set aside for every reply.
inline constexpr std::size_t kReplyHeaderBytesMax = kHeaderBytesMax - (64u << 10);

// What a session asks of those who serve it.
struct Asked {  // Its first bytes are in its upload already.
  Request request;
};
struct Cancelled {  // Not mutating: whatever is said about it from now on is skipped.
  std::uint32_t id = 0;
};
struct Arrived {  // There is something to take from the stream.
  std::uint32_t stream = 0;
};
struct RoomMade {
  std::uint32_t stream = 0;
};
struct Unwanted {  // Nobody reads the stream any more.
  std::uint32_t stream = 0;
};
using SessionEvent = std::variant<Asked, Cancelled, Arrived, RoomMade, Unwanted>;
using SessionEvents = std::vector<SessionEvent>;

// The serving side of one session, across links: which requests are at work, which replies are kept
// and what of each stream is still to arrive. Pure: messages in, events and messages out.
class ServedSession {
 public:
  // A link was welcomed to it, by the name that its peer will resume with; or lost.
  void link_up(std::string link = {});
  void link_down();
  bool linked() const { return linked_; }

  // What the peer sent. kInvalid: it broke the protocol; its link is to be closed.
  base::Result<SessionEvents> receive(Message message);
  // What is to be sent next; nothing when nothing is.
  std::optional<Message> next();

  // How requests are served. Of a mutating request whose reply is larger than usual, room for it is
  // taken before anything is done; false: there is none, and it is to fail with kRepliesFull.
  bool reserve(std::uint32_t id, std::size_t reply_bytes);
  // Its download may go on; who asked for one has it ended some time.
  void reply(std::uint32_t id, base::Json ok);
  void reply_whole(std::uint32_t id, base::Json ok, std::string_view download);
  void fail(std::uint32_t id, Failure failure);

  // Its streams. Producers keep to `room`, but for what they took room for.
  std::size_t room(std::uint32_t stream) const { return streams_.room(stream); }
  void append(std::uint32_t stream, std::string_view bytes);
  void skip(std::uint32_t stream, std::int64_t count);
  void end(std::uint32_t stream, std::optional<Failure> error = std::nullopt);
  std::optional<Piece> take(std::uint32_t stream, std::size_t bytes_max = kChunkBytes) {
    return streams_.take(stream, bytes_max);
  }
  void stop(std::uint32_t stream) { streams_.stop(stream); }
  bool wants(std::uint32_t stream) { return streams_.outgoing(stream) != nullptr; }
  // How much of what was appended its peer has for good; nothing once it is not wanted.
  std::optional<std::int64_t> acknowledged(std::uint32_t stream);

  void tell(std::string_view kind, std::string_view message, std::optional<base::Json> detail = {});

  // For bounds and reports.
  std::size_t unanswered() const;
  std::size_t replies_kept() const { return by_seq_.size(); }
  std::size_t reply_bytes_kept();
  std::size_t streams_open() const { return streams_.size(); }
  std::size_t stream_bytes_held() const { return streams_.held(); }

 private:
  struct Work {
    std::optional<std::int64_t> seq;
    bool has_download = false;
    std::vector<OpenedStream> further;
    std::optional<Reply> reply;
    bool sent = false;       // The reply, on this link or one before.
    bool sent_here = false;  // On this link.
    bool whole = false;      // It carried its whole download.
    std::size_t bytes = 0;
  };
  using Received = base::Result<SessionEvents>;

  Received take_in(Resume resume);
  Received take_in(Request request);
  Received take_in(const Cancel& cancel);
  Received take_in(const Ack& ack);
  Received take_in_again(Work& work, const Request& request);
  std::optional<Failure> refusal(const Request& request) const;
  std::size_t streams_in_use() const;
  void acknowledge(std::int64_t seq);
  Work& begin(const Request& request);
  void answer(std::uint32_t id, Reply reply);
  std::optional<Reply> next_reply();
  std::optional<Notice> next_notice();
  void drop(std::uint32_t id);  // With its streams.
  void forget_if_over(std::uint32_t id);

  StreamSet streams_;
  std::map<std::uint32_t, Work> work_;
  std::map<std::int64_t, std::uint32_t> by_seq_;  // Of those that are not acknowledged.
  std::int64_t seq_highest_ = 0;
  std::deque<std::uint32_t> replies_due_;
  std::deque<Reply> refusals_;      // Of what left no trace here.
  std::set<std::uint32_t> bodies_;  // Downloads of mutating requests, which are held whole.
  std::deque<Notice> notices_;
  std::int64_t notices_made_ = 0, notices_sent_ = 0;
  std::string link_;
  bool linked_ = false, peer_resumed_ = false, resume_due_ = false;
};

}  // namespace wire
