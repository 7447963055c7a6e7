#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agentd/carry/outbox.h"
#include "libs/aio/stream.h"
#include "libs/wire/frames/frame.h"

namespace agentd {

// A harness's end: frames that follow each other on a stream of bytes.
class HarnessLink {
 public:
  HarnessLink(aio::Executor executor, std::shared_ptr<aio::Stream> stream)
      : outbox(std::move(executor)), stream_(std::move(stream)) {}

  // Nothing at the end of the stream. kInvalid: what came is no frame.
  aio::Task<base::Result<std::optional<Carried>>> read();
  // Sends what is in the outbox, as fast as the harness takes it; then the harness reads the end,
  // and has `hang_up_within` to do the same. So long, too, its last word may be read when it takes
  // nothing more.
  aio::Task<> speak(base::Milliseconds hang_up_within);

  Outbox outbox;

 private:
  std::shared_ptr<aio::Stream> stream_;
  wire::FrameReader reader_;
};

}  // namespace agentd
