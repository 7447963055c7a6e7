#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "controller/attach/service.h"
#include "libs/base/standing_listener.h"

namespace controller {

struct SocketDoorSettings {
  std::filesystem::path path;
  std::optional<gid_t> group = {};  // May connect too; else we and root alone.
  std::size_t connections_max = 64;
  // Why nothing may be made there now; empty when it may. A folder that took the place of ours gets
  // no socket.
  std::function<std::string()> hindrance = [] { return std::string(); };
  base::Milliseconds look{1'000};  // Whether the socket still stands.
};

// The attach service at a Unix socket. A thread of its own makes it anew when its file is gone. Its
// end removes the file, cuts what it is asked right then, and waits for nobody.
class SocketDoor {
 public:
  SocketDoor(AttachService& service, SocketDoorSettings settings);
  ~SocketDoor();
  SocketDoor(const SocketDoor&) = delete;
  SocketDoor& operator=(const SocketDoor&) = delete;

  // Once, when the service can answer: what it reads from is complete. It is open on return, or
  // has trouble.
  void open();
  // Why it is not open; empty when it is.
  std::string trouble() const;

 private:
  base::Result<base::Done> serve(base::Fd socket);

  AttachService& service_;
  const SocketDoorSettings settings_;
  std::stop_source stop_;  // For whoever is answered.
  base::StandingListener listener_;
  std::unique_ptr<net::HttpServer> server_;  // Of the thread alone, once it runs.
  std::jthread thread_;                      // Last: it uses all of the above.
};

}  // namespace controller
