#include "agentd/carry/outbox.h"

#include <utility>

namespace agentd {

aio::Task<bool> Outbox::put(std::string frame) {
  while (!over_ && held_ >= kBytesMax) co_await moved_.wait();
  if (over_) co_return false;
  held_ += frame.size();
  frames_.push_back(std::move(frame));
  moved_.notify_all();
  co_return true;
}

void Outbox::ping() {
  ping_due_ = true;
  moved_.notify_all();
}

void Outbox::pong() {
  pong_due_ = true;
  moved_.notify_all();
}

void Outbox::finish(const wire::Message& last) {
  if (std::exchange(over_, true)) return;
  frames_.push_back(wire::encode(wire::to_frame(last)));
  held_ += frames_.back().size();
  moved_.notify_all();
}

void Outbox::close() {
  over_ = true;
  ping_due_ = pong_due_ = false;
  frames_.clear();
  held_ = 0;
  moved_.notify_all();
}

aio::Task<std::optional<std::string>> Outbox::take() {
  for (;;) {
    if (std::exchange(pong_due_, false)) co_return wire::encode(wire::to_frame(wire::Pong{}));
    if (std::exchange(ping_due_, false)) co_return wire::encode(wire::to_frame(wire::Ping{}));
    if (!frames_.empty()) break;
    if (over_) co_return std::nullopt;
    co_await moved_.wait();
  }
  std::string frame = std::move(frames_.front());
  frames_.pop_front();
  held_ -= frame.size();
  moved_.notify_all();
  co_return frame;
}

}  // namespace agentd
