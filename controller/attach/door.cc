#include "controller/attach/door.h"

#include <condition_variable>

#include "libs/base/log.h"
#include "libs/net/server/routes.h"

namespace controller {

Door::Door(AttachService& service, kube::Client& client, const base::Clock& clock,
           DoorSettings settings)
    : service_(service),
      settings_(std::move(settings)),
      keeper_(client, clock, settings_.certificates),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Door::~Door() {
  thread_.request_stop();
  thread_.join();
}

std::uint16_t Door::port() const {
  std::lock_guard lock(mutex_);
  return server_ ? server_->port() : 0;
}

void Door::run(const std::stop_token& stop) {
  std::mutex asleep;
  std::condition_variable_any woken;
  while (!stop.stop_requested()) {
    const auto turned = turn(stop);
    if (!turned && !stop.stop_requested())
      base::log::warn(port() ? "the attach service keeps its certificate"
                             : "the attach service cannot open yet",
                      {{"error", turned.error()}});
    std::unique_lock lock(asleep);
    woken.wait_for(lock, stop, turned ? settings_.look : settings_.look_while_closed,
                   [] { return false; });
  }
}

base::Result<base::Done> Door::turn(const std::stop_token& stop) {
  TRY(const TlsMaterial material, keeper_.turn(stop));
  if (material.serving == served_) return base::Done{};
  CHECK_OK(serve(material.serving));
  served_ = material.serving;
  return base::Done{};
}

base::Result<base::Done> Door::serve(const base::Certified& identity) {
  if (port()) return server_->renew(identity);  // No other thread replaces the server.
  TRY(auto server,
      net::HttpServer::start(
          {.address = settings_.address, .port = settings_.port, .identity = identity},
          net::route({{"POST", std::string(kAttachPath), [this](const net::ServedRequest& request) {
                         return service_.answer(request);
                       }}})));
  base::log::info("the attach service is open",
                  {{"address", settings_.address}, {"port", server->port()}});
  std::lock_guard lock(mutex_);
  server_ = std::move(server);
  return base::Done{};
}

}  // namespace controller
