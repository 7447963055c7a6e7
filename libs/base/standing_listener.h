#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "libs/base/unix_socket.h"

namespace base {

struct StandingListenerSettings {
  std::string name;  // Whose socket it is, for the log.
  std::filesystem::path path;
  SocketRights rights = {};
  std::optional<mode_t> folder_mode = {};  // Its folder is made, too, where there is none.
  // Why nothing may be made there now; empty when it may.
  std::function<std::string()> hindrance = [] { return std::string(); };
};

// A listener that is made anew when its file, or the folder of that, was taken away. Its owner
// looks, about once a second. It says when it opens, and why it does not, once.
class StandingListener {
 public:
  // Takes a descriptor of one that was just made.
  using Serve = std::function<Result<Done>(Fd)>;

  explicit StandingListener(StandingListenerSettings settings) : settings_(std::move(settings)) {}

  // One thread at a time. Where it does not stand it is made anew, once `leave` has let go of the
  // descriptor of the one before: its file may come back. Blocks while another has its place, for
  // half a second. One that cannot be served is taken away again. An error: it does not stand.
  Result<Done> look(const std::function<void()>& leave, const Serve& serve);
  // Whether who connects to the path comes here. As look().
  bool stands() const { return listener_ && listener_->stands(); }
  // Why nobody can connect; empty when they can. From any thread.
  std::string trouble() const;

 private:
  Result<Done> open(const Serve& serve);

  const StandingListenerSettings settings_;
  std::unique_ptr<UnixListener> listener_;
  mutable std::mutex mutex_;
  std::string trouble_ = "not opened yet";
};

}  // namespace base
