#include "libs/wire/session/window.h"

#include <algorithm>
#include <utility>

namespace wire {

void Window::begin_session() {
  last_ = through_ = through_said_ = notices_heard_ = notices_said_ = 0;
  beyond_.clear();
}

void Window::begin_link() {
  through_said_ = notices_said_ = 0;
  for (auto& [seq, said] : beyond_) said = false;
  due_ = true;
}

void Window::answered(std::int64_t seq) {
  beyond_[seq] = false;
  while (!beyond_.empty() && beyond_.begin()->first == through_ + 1) {
    beyond_.erase(beyond_.begin());
    ++through_;
  }
  if (unacknowledged() >= static_cast<std::int64_t>(kAcknowledgeAfter)) due_ = true;
}

bool Window::hear(const Notice& notice) {
  if (notice.number <= notices_heard_) return false;
  notices_heard_ = notice.number;
  return true;
}

// Replies, had or not, that the server still keeps for all it knows.
std::int64_t Window::unacknowledged() const {
  const auto said = std::ranges::count_if(beyond_, [](const auto& one) { return one.second; });
  return last_ - through_said_ - said;
}

std::optional<std::int64_t> Window::kept() {
  if (through_ <= through_said_) return std::nullopt;
  return through_said_ = through_;
}

std::optional<Ack> Window::next_ack() {
  if (!std::exchange(due_, false)) return std::nullopt;
  Ack ack{.through = kept()};
  for (auto& [seq, said] : beyond_)
    if (!std::exchange(said, true)) ack.also.push_back(seq);
  if (notices_heard_ > notices_said_) ack.notices = notices_said_ = notices_heard_;
  if (ack == Ack{}) return std::nullopt;
  return ack;
}

}  // namespace wire
