#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/websocket.h"
#include "libs/base/clock.h"
#include "libs/wire/known_time.h"
#include "libs/wire/session/session_host.h"

namespace wire {

// Carries sessions (docs/protocol.md) over WebSockets: a connection's frames to the host of all
// sessions, and what that has to say back, as fast as the connection takes it. One loop's state.
//   connection -> frames -> SessionHost -> `serve`, who answers in the session and calls wake()
class WebLinks {
 public:
  static constexpr base::Milliseconds kTick{250};
  using Serve = std::function<void(HostEvent)>;
  // Called when somebody is let in, and with each request, reply and piece of data that passes.
  using Worked = std::function<void()>;

  WebLinks(
      aio::Executor executor, HostSettings settings, const Identity& identity,
      const base::Clock& clock, KnownTime& time, Serve serve, Worked worked = [] {});
  WebLinks(const WebLinks&) = delete;
  WebLinks& operator=(const WebLinks&) = delete;

  aio::Task<> serve(std::shared_ptr<aio::HttpExchange> exchange);  // A request for kSessionPath.
  aio::Task<> carry(std::shared_ptr<aio::WebSocket> socket);       // That it became.
  aio::Task<> tend();                                              // To be run beside.

  // What the controller says.
  void quiesce();
  void thaw();
  void resumed(const Resumed& told);
  void shut_down();  // This program is about to end.

  ServedSession* session(const std::string& name) { return host_.find(name); }
  std::optional<Ceiling> ceiling(const std::string& name) const { return host_.ceiling(name); }
  std::size_t sessions() const { return host_.sessions(); }
  // After a session was given something to say.
  void wake();

 private:
  struct Link {
    LinkId id = 0;
    std::shared_ptr<aio::WebSocket> socket;
  };
  aio::Task<> read(Link link);
  aio::Task<> write(Link link);
  std::vector<std::string> next_frames(LinkId link);
  Now now() const { return {clock_.now(), time_.now()}; }
  void settle();  // What the host has just learned goes where it belongs.

  SessionHost host_;
  const base::Clock& clock_;
  KnownTime& time_;
  Serve serve_;
  Worked worked_;
  aio::Condition said_;  // There may be something to send on any link.
};

}  // namespace wire
