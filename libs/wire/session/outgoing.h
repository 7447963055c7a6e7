#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libs/base/result.h"
#include "libs/wire/frames/message.h"

namespace wire {

// The sending end of a stream: what was not received yet is kept, so that it can go out again after
// a cut. Errors: kInvalid, the peer claims what cannot be.
class Outgoing {
 public:
  Outgoing() = default;
  explicit Outgoing(std::int64_t limit) : limit_(limit) {}

  // The producer's side. How many bytes more it may hold, when `allowance` is what it may hold.
  std::size_t room(std::size_t allowance) const;
  void append(std::string_view bytes);
  // Lets go of what is held: what is appended next stands `count` further than it would.
  void skip(std::int64_t count);
  void end(std::optional<Failure> error = std::nullopt);
  void stop();  // Nobody wants it any more.

  // What the peer says.
  base::Result<base::Done> credit(std::int64_t received, std::int64_t limit, bool ended);

  // A link was lost; nothing goes out until the peer has said how far it came.
  void cut() { blocked_ = true; }
  base::Result<base::Done> go_on(std::int64_t received, std::int64_t limit, bool ended);
  // The peer never saw it; what was let go cannot be sent to it.
  void restart(std::int64_t limit);

  // What goes out next, of at most `bytes_max` bytes; its stream is for the caller to fill in.
  bool ready() const;
  Data next(std::size_t bytes_max);

  bool ended() const { return ended_; }
  // Nothing was sent yet, and nothing speaks against sending what comes first as part of a message
  // that stands for offset 0.
  bool may_begin() const { return ready() && sent_ == 0 && base_ == 0 && !error_; }
  bool done() const { return done_; }  // Received to the end, or stopped.
  bool untouched() const { return base_ == 0; }
  std::size_t held() const { return bytes_.size() - gone_; }
  std::int64_t acknowledged() const { return acknowledged_; }
  std::int64_t offset() const { return end_; }  // Of the next byte to be appended.

 private:
  void forget_before(std::int64_t offset);

  std::string bytes_;  // From base_ - gone_ on.
  std::size_t gone_ = 0;
  std::int64_t base_ = 0, end_ = 0;  // Of what is held.
  std::int64_t sent_ = 0, sent_max_ = 0, limit_ = 0, acknowledged_ = 0;
  bool ended_ = false, end_sent_ = false, done_ = false, blocked_ = false;
  std::optional<Failure> error_;
};

}  // namespace wire
