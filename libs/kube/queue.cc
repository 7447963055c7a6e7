#include "libs/kube/queue.h"

#include <algorithm>

#include "libs/base/back_off.h"

namespace kube {
namespace {

// The worker on watch looks at the clock again at least this often, so that a clock that is moved
// by hand is noticed as well.
constexpr base::Milliseconds kWaitMax{1'000};

}  // namespace

Queue::Queue(const base::Clock& clock, QueueOptions options) : clock_(clock), options_(options) {}

void Queue::add(const api::Key& key) {
  std::lock_guard lock(mutex_);
  if (add_ready(key)) wake_one();
}

void Queue::add_after(const api::Key& key, base::Milliseconds delay_for) {
  std::lock_guard lock(mutex_);
  if (delay_for > base::Milliseconds(0)) return delay(key, clock_.now() + delay_for);
  if (add_ready(key)) wake_one();
}

// False: it is ready already, or held back.
bool Queue::add_ready(const api::Key& key) {
  if (in_work_.contains(key)) {
    again_.insert(key);
    return false;
  }
  if (!waiting_.emplace(key, clock_.now()).second) return false;
  ready_.emplace(order_++, key);
  ++adds_;
  return true;
}

// Each ready key has a sleeper that was called for it, or else the one on watch.
void Queue::wake_one() {
  called_.notify_one();
  if (ready_.size() > asleep_) watch_ends_.notify_one();
}

void Queue::delay(const api::Key& key, base::Moment due) {
  if (const auto old = due_.find(key); old != due_.end() && old->second <= due) return;
  undelay(key);
  const auto entry = due_.emplace(key, due).first;
  delayed_.emplace(due, &entry->first);
  if (delayed_.begin()->first == due) watch_ends_.notify_one();
}

void Queue::undelay(const api::Key& key) {
  const auto old = due_.find(key);
  if (old == due_.end()) return;
  delayed_.erase({old->second, &old->first});
  due_.erase(old);
}

void Queue::promote_due() {
  const base::Moment now = clock_.now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const api::Key key = *delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    if (add_ready(key)) wake_one();
  }
}

std::optional<api::Key> Queue::take() {
  promote_due();
  if (ready_.empty()) return std::nullopt;
  api::Key key = ready_.begin()->second;
  ready_.erase(ready_.begin());
  const base::Moment now = clock_.now();
  taken_after_[key] = now - waiting_[key];
  waiting_.erase(key);
  undelay(key);  // This look is the one that was to come then, and says when the next is due.
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
    if (auto key = take()) {
      if (!watched_) called_.notify_one();
      return key;
    }
    if (watched_) {
      ++asleep_;
      called_.wait(lock, stop, [this] { return !ready_.empty() || !watched_; });
      --asleep_;
      continue;
    }
    const base::Moment now = clock_.now();
    base::Moment until = now + kWaitMax;
    if (!delayed_.empty()) until = std::min(until, delayed_.begin()->first);
    watched_ = true;
    watch_ends_.wait_for(lock, stop, until - now, [&] {
      return !ready_.empty() || (!delayed_.empty() && delayed_.begin()->first < until);
    });
    watched_ = false;
  }
  if (!watched_) called_.notify_one();
  return std::nullopt;
}

void Queue::done(const api::Key& key, const Requeue& requeue) {
  std::lock_guard lock(mutex_);
  in_work_.erase(key);
  taken_after_.erase(key);
  if (requeue.failed) {
    const base::BackOff back_off{options_.backoff_min, options_.backoff_max};
    ++retries_;
    delay(key, clock_.now() + back_off.after(++failures_[key]));
  } else {
    failures_.erase(key);
    if (requeue.after && *requeue.after > base::Milliseconds(0)) {
      delay(key, clock_.now() + *requeue.after);
    } else if (requeue.after) {
      undelay(key);  // The earliest counts.
      again_.insert(key);
    }
  }
  // Nobody is woken for it: who was at work comes back for the next key.
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
  for (const auto& [key, since] : in_work_) {
    stats.oldest_work = std::max(stats.oldest_work, now - since);
    stats.all_work += now - since;
  }
  return stats;
}

base::Milliseconds Queue::waited(const api::Key& key) const {
  std::lock_guard lock(mutex_);
  const auto found = taken_after_.find(key);
  return found == taken_after_.end() ? base::Milliseconds(0) : found->second;
}

}  // namespace kube
