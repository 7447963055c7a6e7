#pragma once

#include <memory>
#include <string>
#include <variant>

#include "agentd/carry/next_step.h"
#include "agentd/carry/outbox.h"
#include "agentd/dial/dial.h"
#include "agentd/way/way.h"
#include "libs/aio/websocket.h"
#include "libs/wire/frames/frame.h"
#include "libs/wire/handshake.h"
#include "libs/wire/session/pulse.h"

namespace agentd {

// An executor's end: one frame in each message of a WebSocket.
class ExecutorLink {
 public:
  // Dials, and shakes hands as a client whose token is not shown (docs/protocol.md, "Opening a
  // link"). What the harness said in `hello` goes on, but for its credential.
  using Opened = std::variant<std::shared_ptr<ExecutorLink>, Ending>;
  static aio::Task<Opened> open(aio::Executor executor, const Dialler& dialler, Way way,
                                wire::Hello hello, base::Moment now);

  // The frame that let us in, and what it says.
  const wire::Frame& welcome_frame() const { return welcome_frame_; }
  const wire::Welcome& welcome() const { return welcome_; }

  // kInvalid: what came is no frame.
  aio::Task<base::Result<Carried>> read();
  // Sends what is in the outbox, as fast as the executor takes it; then it has `hang_up_within` to
  // hang up. So long, too, its last word may be read when it takes nothing more.
  aio::Task<> speak(base::Milliseconds hang_up_within);
  // Shows the executor another token of the same run.
  aio::Task<bool> renew(std::string token);
  void reset();  // Whoever reads or speaks hears of it.

  Outbox outbox;
  wire::Pulse pulse;

 private:
  ExecutorLink(aio::Executor executor, std::shared_ptr<aio::WebSocket> socket, base::Moment now);
  aio::Task<base::Result<wire::Message>> exchange(wire::Message message);
  aio::Task<std::optional<Ending>> shake_hands(wire::Hello hello, wire::SplitToken token);

  std::shared_ptr<aio::WebSocket> socket_;
  wire::Nonces nonces_;
  wire::Frame welcome_frame_;
  wire::Welcome welcome_;
};

}  // namespace agentd
