#pragma once

#include <functional>
#include <optional>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "libs/wire/frames/frame.h"

namespace wire {

// Frames that follow each other on a stream socket. Nothing waits here. It holds one frame each
// way, and what one read brought along.
class Link {
 public:
  static constexpr std::size_t kReadBytes = 256u << 10;

  explicit Link(base::Fd socket);

  int descriptor() const { return socket_.get(); }
  bool blocked() const { return sent_ < out_.size(); }  // Until the socket takes more.

  enum class Received { kNothing, kSome, kEnd };

  // What is left and what `next` gives, as far as the socket takes it. False: it takes no more.
  bool send(const std::function<std::optional<Frame>()>& next);
  // What has come, read once. kInvalid: it is no frame.
  base::Result<Received> receive(const std::function<void(Frame)>& hand_on);

 private:
  base::Fd socket_;
  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  FrameReader reader_;
};

}  // namespace wire
