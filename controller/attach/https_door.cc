#include "controller/attach/https_door.h"

#include "libs/base/log.h"
#include "libs/base/rest.h"

namespace controller {

HttpsDoor::HttpsDoor(AttachService& service, kube::Client& client, const base::Clock& clock,
                     metrics::Registry& registry, HttpsDoorSettings settings)
    : service_(service),
      registry_(registry),
      settings_(std::move(settings)),
      keeper_(client, clock, settings_.certificates) {}

// What runs for a connection asks with the thread's token, and is waited for by the server's end.
HttpsDoor::~HttpsDoor() { thread_.request_stop(); }

void HttpsDoor::open() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

std::uint16_t HttpsDoor::port() const {
  std::lock_guard lock(mutex_);
  return server_ ? server_->port() : 0;
}

std::string HttpsDoor::trouble() const {
  std::lock_guard lock(mutex_);
  return server_ ? "" : "the attach service: " + trouble_;
}

void HttpsDoor::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto turned = turn(stop);
    if (!stop.stop_requested()) note(turned);
    base::rest(turned ? settings_.look : settings_.look_while_closed, stop);
  }
}

void HttpsDoor::note(const base::Result<base::Done>& turned) {
  if (turned) return;
  base::log::warn(
      port() ? "the attach service keeps its certificate" : "the attach service cannot open yet",
      {{"error", turned.error()}});
  std::lock_guard lock(mutex_);
  trouble_ = turned.error().message;
}

base::Result<base::Done> HttpsDoor::turn(const std::stop_token& stop) {
  TRY(const TlsMaterial material, keeper_.turn(stop));
  if (material.serving == served_) return base::Done{};
  CHECK_OK(serve(material.serving, stop));
  served_ = material.serving;
  TRY(const auto facts, base::facts_of(served_));
  registry_.gauge("sandfleet_attach_certificate_expiry_timestamp_seconds")
      .set(std::chrono::duration<double>(facts.not_after.time_since_epoch()).count());
  return base::Done{};
}

base::Result<base::Done> HttpsDoor::serve(const base::Certified& identity,
                                          const std::stop_token& stop) {
  if (port()) return server_->renew(identity, stop);  // No other thread replaces the server.
  TRY(auto server, net::HttpServer::start({.address = settings_.address,
                                           .port = settings_.port,
                                           .connections_max = settings_.connections_max,
                                           .connections_each_max = settings_.connections_each_max,
                                           .head_bytes_max = kAttachHeadBytesMax,
                                           .body_bytes_max = kAttachBodyBytesMax,
                                           .identity = identity},
                                          service_.handler(stop)));
  base::log::info("the attach service is open",
                  {{"address", settings_.address}, {"port", server->port()}});
  std::lock_guard lock(mutex_);
  server_ = std::move(server);
  return base::Done{};
}

}  // namespace controller
