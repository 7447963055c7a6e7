#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "executor/admin/pause_guard.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/websocket.h"
#include "libs/base/clock.h"
#include "libs/wire/session/session_host.h"

namespace executor {

// Carries sessions (docs/protocol.md) over WebSockets: a connection's frames to the host of all
// sessions, and what that has to say back, as fast as the connection takes it. One loop's state.
//   connection -> frames -> SessionHost -> `serve`, who answers in the session and calls wake()
class Links {
 public:
  static constexpr base::Milliseconds kTick{250};
  using Serve = std::function<void(wire::HostEvent)>;

  Links(aio::Executor executor, wire::HostSettings settings, const wire::Identity& identity,
        const base::Clock& clock, KnownTime& time, Serve serve);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  aio::Task<> serve(
      std::shared_ptr<aio::HttpExchange> exchange);  // A request for wire::kSessionPath.
  aio::Task<> tend();                                // To be run beside.

  // What the controller says (executor/admin/).
  void quiesce();
  void thaw();
  void resumed(const wire::Resumed& told);
  void shut_down();  // This program is about to end.

  wire::ServedSession* session(const std::string& name) { return host_.find(name); }
  std::optional<wire::Ceiling> ceiling(const std::string& name) const {
    return host_.ceiling(name);
  }
  // After a session was given something to say.
  void wake();

 private:
  struct Link {
    wire::LinkId id = 0;
    std::shared_ptr<aio::WebSocket> socket;
  };
  aio::Task<> read(Link link);
  aio::Task<> write(Link link);
  wire::Now now() const { return {clock_.now(), time_.now(clock_.wall())}; }
  void settle();  // What the host has just learned goes where it belongs.

  wire::SessionHost host_;
  const base::Clock& clock_;
  KnownTime& time_;
  Serve serve_;
  aio::Condition said_;  // There may be something to send on any link.
};

}  // namespace executor
