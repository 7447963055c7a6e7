#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "libs/aio/loop.h"
#include "libs/wire/frames/message.h"

namespace agentd {

// A frame on its way from one link to another, as it came.
struct Carried {
  std::uint8_t type = 0;  // A wire::FrameType, or one of a later version.
  std::uint32_t stream = 0;
  std::string bytes;

  bool is(wire::FrameType wanted) const { return type == static_cast<std::uint8_t>(wanted); }
};

// What one link is still to send, in order. Who puts more in waits while the link is behind: so the
// other side is read no faster than this one takes it.
class Outbox {
 public:
  // It takes one frame more when it holds less.
  static constexpr std::size_t kBytesMax = 256u << 10;

  explicit Outbox(aio::Executor executor) : moved_(std::move(executor)) {}

  // False: the link is over, and the frame is dropped.
  aio::Task<bool> put(std::string frame);
  // Before all else that waits; however often they are due, once.
  void ping();
  void pong();
  // The last word, after all that waits. What is put later is dropped.
  void finish(const wire::Message& last);
  void close();  // At once: what waits is dropped.

  // The next frame to be sent; nothing: it is over.
  aio::Task<std::optional<std::string>> take();

  bool over() const { return over_; }
  std::size_t held() const { return held_; }

 private:
  std::deque<std::string> frames_;
  std::size_t held_ = 0;  // Bytes.
  bool ping_due_ = false, pong_due_ = false, over_ = false;
  aio::Condition moved_;
};

}  // namespace agentd
