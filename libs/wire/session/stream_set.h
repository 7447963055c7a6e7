#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "libs/base/result.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/session/incoming.h"
#include "libs/wire/session/outgoing.h"

namespace wire {

inline constexpr std::size_t kStreamsBytesMax = 16u << 20;    // Beyond it a stream holds no more
inline constexpr std::size_t kStreamBytesAlways = 64u << 10;  // than this.
inline constexpr std::size_t kChunkBytes = 64u << 10;         // Sent before another has its turn.
inline constexpr std::size_t kChunkBytesAfterCut = 2u << 10;  // At first; each is twice the last.

// What one stream may hold while all of a session's hold `held` together.
constexpr std::size_t stream_allowance(std::size_t held) {
  return held < kStreamsBytesMax ? kStreamBytesMax : kStreamBytesAlways;
}

inline bool names(const std::vector<std::uint32_t>& ids, std::uint32_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

// The streams of a session on one of its sides, and whose turn it is. An id may have one stream
// each way. A stream that is not known is one that has ended: what concerns it is skipped. Errors:
// kInvalid, the peer broke the rules.
class StreamSet {
 public:
  bool knows(std::uint32_t id) const { return outgoing_.contains(id) || incoming_.contains(id); }
  std::size_t size() const { return outgoing_.size() + incoming_.size(); }
  std::size_t held() const;     // Bytes, both ways.
  std::size_t granted() const;  // Bytes that may come to be held, by what peers were granted.

  void open_outgoing(std::uint32_t id, std::int64_t limit) { outgoing_.emplace(id, limit); }
  // `kept`: also past its end, until it is forgotten.
  void open_incoming(std::uint32_t id, std::int64_t limit, bool kept = false);
  Outgoing* outgoing(std::uint32_t id);
  Incoming* incoming(std::uint32_t id);
  void forget_outgoing(std::uint32_t id) { outgoing_.erase(id); }
  void forget_incoming(std::uint32_t id);
  std::map<std::uint32_t, Outgoing>& all_outgoing() { return outgoing_; }
  std::map<std::uint32_t, Incoming>& all_incoming() { return incoming_; }

  // The users' side; 0 and nothing for streams that have ended.
  std::size_t room(std::uint32_t id) const;
  std::optional<Piece> take(std::uint32_t id, std::size_t bytes_max);
  void stop(std::uint32_t id);  // What comes in is wanted no more.
  void stop_if_gone(std::uint32_t id);

  // The peer's side. True: there is news for whoever uses the stream.
  base::Result<bool> receive(Data data);
  base::Result<bool> receive(const Credit& credit);
  bool receive(const Stop& stop);

  void cut();  // The link was lost.
  // How much goes into the next frame. Frames are small again once a link was lost that had carried
  // some: the next may not last for a large one, and what is cut within a frame is sent again.
  std::size_t next_chunk();
  std::vector<Receiving> state();  // For the peer on a new one.

  // The next message about streams that is due. `may_send`: whether what goes out by that id may
  // begin yet.
  std::optional<Message> next(const std::function<bool(std::uint32_t)>& may_send);
  std::optional<Stop> next_stop();
  void credit_due(std::uint32_t id) { to_credit_.insert(id); }

 private:
  std::optional<Credit> next_credit();
  std::optional<Data> next_data(const std::function<bool(std::uint32_t)>& may_send);
  void forget_if_done(std::uint32_t id);

  std::map<std::uint32_t, Outgoing> outgoing_;
  std::map<std::uint32_t, Incoming> incoming_;
  std::set<std::uint32_t> kept_, stops_, to_credit_;
  std::uint32_t last_ = 0;  // That had its turn.
  std::size_t chunk_ = kChunkBytes;
  bool carried_ = false;  // Something, on this link.
};

}  // namespace wire
