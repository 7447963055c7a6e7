#include "libs/kube/queue.h"

#include <algorithm>

namespace kube {
namespace {

// A worker that waits for a delayed key looks at the clock again at least this often, so that a
// clock that is moved by hand is noticed as well.
constexpr base::Milliseconds kWaitMax{1'000};

}  // namespace

Queue::Queue(const base::Clock& clock, QueueOptions options) : clock_(clock), options_(options) {}

void Queue::add(const api::Key& key) {
  std::lock_guard lock(mutex_);
  add_ready(key);
}

void Queue::add_after(const api::Key& key, base::Milliseconds delay_for) {
  std::lock_guard lock(mutex_);
  if (delay_for <= base::Milliseconds(0)) return add_ready(key);
  delay(key, clock_.now() + delay_for);
}

void Queue::add_ready(const api::Key& key) {
  if (in_work_.contains(key)) {
    again_.insert(key);
    return;
  }
  if (!waiting_.emplace(key, clock_.now()).second) return;
  ready_.emplace(order_++, key);
  ++adds_;
  changed_.notify_one();
}

void Queue::delay(const api::Key& key, base::Moment due) {
  if (const auto old = due_.find(key); old != due_.end()) {
    if (old->second <= due) return;
    delayed_.erase({old->second, key});
  }
  due_[key] = due;
  delayed_.emplace(due, key);
  changed_.notify_one();
}

void Queue::promote_due() {
  const base::Moment now = clock_.now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const api::Key key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    add_ready(key);
  }
}

std::optional<api::Key> Queue::take() {
  promote_due();
  if (ready_.empty()) return std::nullopt;
  const api::Key key = ready_.begin()->second;
  ready_.erase(ready_.begin());
  const base::Moment now = clock_.now();
  taken_after_[key] = now - waiting_[key];
  waiting_.erase(key);
  in_work_[key] = now;
  return key;
}

std::optional<api::Key> Queue::try_next() {
  std::lock_guard lock(mutex_);
  return take();
}

std::optional<api::Key> Queue::next(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (auto key = take()) return key;
    auto wait = kWaitMax;
    if (!delayed_.empty()) wait = std::min(wait, delayed_.begin()->first - clock_.now());
    changed_.wait_for(lock, stop, wait, [this] { return !ready_.empty(); });
  }
  return std::nullopt;
}

void Queue::done(const api::Key& key, const Requeue& requeue) {
  std::lock_guard lock(mutex_);
  in_work_.erase(key);
  taken_after_.erase(key);
  if (requeue.failed) {
    const int failures = std::min(failures_[key]++, 30);
    ++retries_;
    delay(key, clock_.now() + std::min(options_.backoff_max,
                                       options_.backoff_min * (std::int64_t{1} << failures)));
  } else {
    failures_.erase(key);
    if (requeue.after) delay(key, clock_.now() + *requeue.after);
  }
  if (again_.erase(key) > 0) add_ready(key);
}

std::optional<base::Moment> Queue::next_due() const {
  std::lock_guard lock(mutex_);
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

QueueStats Queue::stats() const {
  std::lock_guard lock(mutex_);
  QueueStats stats{.depth = ready_.size(),
                   .in_work = in_work_.size(),
                   .delayed = delayed_.size(),
                   .adds = adds_,
                   .retries = retries_};
  const base::Moment now = clock_.now();
  for (const auto& [key, since] : in_work_)
    stats.oldest_work = std::max(stats.oldest_work, now - since);
  return stats;
}

base::Milliseconds Queue::waited(const api::Key& key) const {
  std::lock_guard lock(mutex_);
  const auto found = taken_after_.find(key);
  return found == taken_after_.end() ? base::Milliseconds(0) : found->second;
}

}  // namespace kube
