#include "controller/attach/socket_door.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/rest.h"

namespace controller {

SocketDoor::~SocketDoor() {
  thread_.request_stop();
  stop_.request_stop();
}

void SocketDoor::open() {
  look();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      look();
      base::rest(settings_.look, stop);
    }
  });
}

std::string SocketDoor::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_.empty() ? "" : "the attach service: " + trouble_;
}

void SocketDoor::look() {
  if (listener_ && listener_->stands()) return;
  const auto served = serve();
  std::string why = served ? "" : served.error().message;
  std::unique_lock lock(mutex_);
  const bool known = !served && why == trouble_;
  trouble_ = std::move(why);
  lock.unlock();
  if (served) {
    base::log::info("the attach service is open", {{"socket", settings_.path.string()}});
  } else if (!known) {
    base::log::warn("the attach service is closed", {{"error", served.error()}});
  }
}

// What came before goes first: nobody reaches it any more.
base::Result<base::Done> SocketDoor::serve() {
  server_.reset();
  listener_.reset();
  if (std::string why = settings_.hindrance(); !why.empty())
    return base::Error{base::ErrorCode::kUnavailable, std::move(why)};
  const base::SocketRights rights{.mode = settings_.group ? mode_t{0660} : mode_t{0600},
                                  .group = settings_.group};
  TRY(auto listener, base::UnixListener::at(settings_.path, rights));
  TRY(base::Fd shared, listener->share());
  TRY(server_, net::HttpServer::start_on(std::move(shared),
                                         {.connections_max = settings_.connections_max,
                                          .head_bytes_max = kAttachHeadBytesMax,
                                          .body_bytes_max = kAttachBodyBytesMax},
                                         service_.handler(stop_.get_token())));
  listener_ = std::move(listener);
  return base::Done{};
}

}  // namespace controller
