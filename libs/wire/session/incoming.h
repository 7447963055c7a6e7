#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "libs/base/result.h"
#include "libs/wire/frames/message.h"

namespace wire {

// What was received of a stream, as it is handed on. A piece that begins further on than the one
// before ended tells that what lies between was let go.
struct Piece {
  std::int64_t offset = 0;
  std::string bytes = {};
  bool end = false;
  std::optional<Failure> error = std::nullopt;
  bool operator==(const Piece&) const = default;
};

// The receiving end of a stream: takes each byte once, however often it comes, and says how far the
// sender may go. Errors: kInvalid, the peer broke the rules of streams.
class Incoming {
 public:
  Incoming() = default;
  explicit Incoming(std::int64_t limit) : limit_(limit), told_limit_(limit) {}

  base::Result<base::Done> receive(Data data);
  // The reader's side: up to `bytes_max` bytes; nothing when there is no more for now. After the
  // end nothing comes.
  std::optional<Piece> take(std::size_t bytes_max);
  // No more will come, and why; what is there may still be taken.
  void break_off(Failure why);

  // What to tell the sender now; nothing when it knows enough. `allowance`: how much it may send
  // ahead of the reader.
  std::optional<Credit> credit(std::size_t allowance);
  // The same in full, for a new link.
  Receiving state(std::size_t allowance);

  bool ended() const { return ended_; }  // The end was seen.
  // The end was handed on, and the sender knows.
  bool done() const { return end_taken_ && end_told_; }
  // The sender knows without a word from here.
  void end_is_known() { end_told_ = true; }
  bool untouched() const { return received_ == 0 && !ended_; }
  std::size_t held() const { return held_; }
  std::int64_t granted() const { return limit_ - taken_; }  // What may come to be held.

 private:
  void grant(std::size_t allowance);
  bool continues(const Piece& piece) const;

  std::deque<Piece> pieces_;
  std::size_t held_ = 0;
  std::int64_t received_ = 0, taken_ = 0, limit_ = 0;
  std::int64_t told_limit_ = 0;
  bool ended_ = false, end_taken_ = false, end_told_ = false, dropped_ = false;
  std::optional<Failure> error_;
};

}  // namespace wire
