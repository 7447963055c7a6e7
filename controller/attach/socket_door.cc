#include "controller/attach/socket_door.h"

#include <utility>

#include "libs/base/rest.h"

namespace controller {
namespace {

base::StandingListenerSettings listener_settings(const SocketDoorSettings& settings) {
  return {.name = "the attach service",
          .path = settings.path,
          .rights = {.mode = settings.group ? mode_t{0660} : mode_t{0600}, .group = settings.group},
          .hindrance = settings.hindrance};
}

}  // namespace

SocketDoor::SocketDoor(AttachService& service, SocketDoorSettings settings)
    : service_(service), settings_(std::move(settings)), listener_(listener_settings(settings_)) {}

SocketDoor::~SocketDoor() {
  thread_.request_stop();
  stop_.request_stop();
}

void SocketDoor::open() {
  const auto look = [this] {
    static_cast<void>(listener_.look(  // trouble() tells.
        [this] { server_.reset(); }, [this](base::Fd socket) { return serve(std::move(socket)); }));
  };
  look();
  thread_ = std::jthread([this, look](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      look();
      base::rest(settings_.look, stop);
    }
  });
}

std::string SocketDoor::trouble() const {
  const std::string trouble = listener_.trouble();
  return trouble.empty() ? "" : "the attach service: " + trouble;
}

base::Result<base::Done> SocketDoor::serve(base::Fd socket) {
  TRY(server_, net::HttpServer::start_on(std::move(socket),
                                         {.connections_max = settings_.connections_max,
                                          .head_bytes_max = kAttachHeadBytesMax,
                                          .body_bytes_max = kAttachBodyBytesMax},
                                         service_.handler(stop_.get_token())));
  return base::Done{};
}

}  // namespace controller
