#include "libs/kube/event_recorder.h"

#include <utility>

#include "libs/base/log.h"

namespace kube {

using base::Milliseconds;

namespace {

constexpr Milliseconds kRetry{10'000};
constexpr Milliseconds kLookEvery{5'000};  // For series that have grown.

bool may_pass(const Refusal& refusal) {
  return refusal.code == base::ErrorCode::kUnavailable ||
         refusal.code == base::ErrorCode::kRateLimited;
}

}  // namespace

EventRecorder::EventRecorder(Client& client, const base::Clock& clock, EventSettings settings)
    : client_(client),
      clock_(clock),
      look_every_(std::min(kLookEvery, settings.refresh)),
      book_(std::move(settings)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

EventRecorder::~EventRecorder() = default;

void EventRecorder::record(const Regarding& regarding, const api::Event& event) {
  std::lock_guard lock(mutex_);
  if (auto write = book_.record(regarding, event, clock_.now(), clock_.wall()))
    push(*std::move(write));
}

void EventRecorder::push(EventWrite write) {
  if (queue_.size() >= kEventQueueMax) {
    ++stats_.dropped;
    return;
  }
  queue_.push_back(std::move(write));
  changed_.notify_all();
}

EventStats EventRecorder::stats() const {
  std::lock_guard lock(mutex_);
  EventStats stats = stats_;
  stats.suppressed = book_.suppressed();
  return stats;
}

std::optional<EventWrite> EventRecorder::next(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, look_every_, [&] { return !queue_.empty(); });
  for (EventWrite& write : book_.due(clock_.now())) push(std::move(write));
  if (queue_.empty()) return std::nullopt;
  EventWrite write = std::move(queue_.front());
  queue_.pop_front();
  return write;
}

void EventRecorder::run(const std::stop_token& stop) {
  while (!stop.stop_requested())
    if (const auto write = next(stop)) this->write(*write, stop);
}

void EventRecorder::write(const EventWrite& write, const std::stop_token& stop) {
  for (int attempt = 1;; ++attempt) {
    const auto answer = write.create ? client_.create(kEvents, write.body, {}, stop)
                                     : client_.merge(kEvents, write.key, write.body, {}, {}, stop);
    // One that a try before has made after all is as good.
    const bool there = !answer && answer.error().reason == Reason::kAlreadyExists;
    std::unique_lock lock(mutex_);
    if (answer || there) {
      ++stats_.written;
      refused_ = false;
      return;
    }
    if (!may_pass(answer.error()) || attempt == kEventTriesMax || stop.stop_requested()) {
      ++stats_.dropped;
      if (!write.create) book_.forget(write.key);
      (std::exchange(refused_, true) ? base::log::debug : base::log::warn)(
          "An event was not taken", {{"error", answer.error()}});
      return;
    }
    const Milliseconds wait = std::max(kRetry, answer.error().retry_after.value_or(kRetry));
    changed_.wait_for(lock, stop, wait, [] { return false; });
  }
}

}  // namespace kube
