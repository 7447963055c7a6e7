#include "libs/wire/web/web_links.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/wire/session/endpoint.h"

namespace wire {
namespace {

constexpr std::size_t kTogetherBytes = 64u << 10;

// All else keeps sessions in step, and is sent by those that want nothing, too. Whoever is let in
// has come to want something.
bool carries_work(const Frame& frame) {
  return frame.type == FrameType::kWelcome || frame.type == FrameType::kRequest ||
         frame.type == FrameType::kReply || frame.type == FrameType::kData;
}

}  // namespace

WebLinks::WebLinks(aio::Executor executor, HostSettings settings, const Identity& identity,
                   const base::Clock& clock, KnownTime& time, Serve serve, Worked worked)
    : host_(std::move(settings), identity, clock.now()),
      clock_(clock),
      time_(time),
      serve_(std::move(serve)),
      worked_(std::move(worked)),
      said_(std::move(executor)) {}

aio::Task<> WebLinks::serve(std::shared_ptr<aio::HttpExchange> exchange) {
  aio::WebSocketOptions options{.subprotocol = kSessionSubprotocol,
                                .message_bytes_max = kFrameBytesMax};
  const std::string peer = exchange->peer();
  auto socket = co_await aio::WebSocket::accept(std::move(exchange), std::move(options));
  if (!socket) {
    base::log::debug("no session link", {{"peer", peer}, {"error", socket.error()}});
    co_return;
  }
  co_await carry(*std::move(socket));
}

aio::Task<> WebLinks::carry(std::shared_ptr<aio::WebSocket> socket) {
  const auto id = host_.link_up(now());
  if (!id) co_return;  // All places are taken by those who have proven themselves.
  const Link link{*id, std::move(socket)};
  co_await aio::race(read(link), write(link));
  host_.link_down(*id);
  settle();
}

aio::Task<> WebLinks::read(Link link) {
  for (;;) {
    const auto bytes = co_await link.socket->read();
    if (!bytes) co_return;
    auto frame = decode(*bytes);
    if (!frame) {
      host_.refuse(link.id, frame.error().message);
    } else if (*frame) {
      if (carries_work(**frame)) worked_();
      host_.receive(link.id, **std::move(frame), now());
    }
    settle();
    if (!host_.over(link.id)) continue;
    co_await aio::sleep_for(kTick);  // For the word that it was closed to be read.
    co_return;
  }
}

aio::Task<> WebLinks::write(Link link) {
  for (;;) {
    std::vector<std::string> frames = next_frames(link.id);
    if (!frames.empty()) {
      if (!co_await link.socket->write_all(std::move(frames))) co_return;
      continue;
    }
    if (host_.over(link.id)) co_return;
    co_await said_.wait();
  }
}

// What is there to be said, as far as it is worth to say it in one go.
std::vector<std::string> WebLinks::next_frames(LinkId link) {
  std::vector<std::string> frames;
  for (std::size_t bytes = 0; bytes < kTogetherBytes; bytes += frames.back().size()) {
    const auto frame = host_.next(link);
    if (!frame) break;
    if (carries_work(*frame)) worked_();
    frames.push_back(encode(*frame));
  }
  return frames;
}

aio::Task<> WebLinks::tend() {
  for (;;) {
    co_await aio::sleep_for(kTick);
    host_.tick(now());
    settle();
  }
}

void WebLinks::settle() {
  time_.learn(host_.newest_birth());
  for (HostEvent& event : host_.take_events()) serve_(std::move(event));
  wake();
}

void WebLinks::wake() { said_.notify_all(); }

void WebLinks::quiesce() {
  host_.quiesce(now());
  settle();
}

void WebLinks::thaw() {
  host_.thaw(now());
  settle();
}

void WebLinks::resumed(const Resumed& told) {
  host_.resumed(told.identity, now(), told.news);
  settle();
}

void WebLinks::shut_down() {
  host_.shut_down();
  settle();
}

}  // namespace wire
