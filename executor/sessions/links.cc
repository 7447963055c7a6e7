#include "executor/sessions/links.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/wire/session/endpoint.h"

namespace executor {

Links::Links(aio::Executor executor, wire::HostSettings settings, const wire::Identity& identity,
             const base::Clock& clock, KnownTime& time, Serve serve)
    : host_(std::move(settings), identity, clock.now()),
      clock_(clock),
      time_(time),
      serve_(std::move(serve)),
      said_(std::move(executor)) {}

aio::Task<> Links::serve(std::shared_ptr<aio::HttpExchange> exchange) {
  aio::WebSocketOptions options{.subprotocol = wire::kSessionSubprotocol,
                                .message_bytes_max = wire::kFrameBytesMax};
  const std::string peer = exchange->peer();
  auto socket = co_await aio::WebSocket::accept(std::move(exchange), std::move(options));
  if (!socket) {
    base::log::debug("no session link", {{"peer", peer}, {"error", socket.error()}});
    co_return;
  }
  const auto id = host_.link_up(now());
  if (!id) co_return;  // All places are taken by those who have proven themselves.
  const Link link{*id, *socket};
  co_await aio::race(read(link), write(link));
  host_.link_down(*id);
  settle();
}

aio::Task<> Links::read(Link link) {
  for (;;) {
    const auto bytes = co_await link.socket->read();
    if (!bytes) co_return;
    auto frame = wire::decode(*bytes);
    if (!frame) {
      host_.refuse(link.id, frame.error().message);
    } else if (*frame) {
      host_.receive(link.id, **std::move(frame), now());
    }
    settle();
    if (!host_.over(link.id)) continue;
    co_await aio::sleep_for(kTick);  // For the word that it was closed to be read.
    co_return;
  }
}

aio::Task<> Links::write(Link link) {
  for (;;) {
    while (const auto frame = host_.next(link.id))
      if (!co_await link.socket->write(wire::encode(*frame))) co_return;
    if (host_.over(link.id)) co_return;
    co_await said_.wait();
  }
}

aio::Task<> Links::tend() {
  for (;;) {
    co_await aio::sleep_for(kTick);
    host_.tick(now());
    settle();
  }
}

void Links::settle() {
  time_.learn(host_.newest_birth());
  for (wire::HostEvent& event : host_.take_events()) serve_(std::move(event));
  wake();
}

void Links::wake() { said_.notify_all(); }

void Links::quiesce() {
  host_.quiesce(now());
  settle();
}

void Links::thaw() {
  host_.thaw(now());
  settle();
}

void Links::resumed(const wire::Resumed& told) {
  host_.resumed(told.identity, now(), told.news);
  settle();
}

void Links::shut_down() {
  host_.shut_down();
  settle();
}

}  // namespace executor
