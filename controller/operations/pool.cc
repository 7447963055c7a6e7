#include "controller/operations/pool.h"

#include <algorithm>
#include <utility>

namespace controller {

Pool::Pool(PoolOptions options, std::function<void(const api::Key&)> finished)
    : options_(options), finished_(std::move(finished)) {
  for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

Pool::~Pool() {
  drain(base::Milliseconds(0));
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  waiting_changed_.notify_all();
}

bool Pool::start(Operation operation) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || bounded_.size() + waiting_.size() + patient_.size() >= options_.waiting_max)
      return false;
    if (!running_.try_emplace(operation.uid, operation.name, operation.finishes, std::stop_source())
             .second)
      return false;
    auto& line = operation.line == Operation::Line::kBounded   ? bounded_
                 : operation.line == Operation::Line::kPatient ? patient_
                                                               : waiting_;
    line.push_back(std::move(operation));
  }
  waiting_changed_.notify_one();
  return true;
}

std::optional<std::string> Pool::running(const std::string& uid) const {
  std::lock_guard lock(mutex_);
  const auto found = running_.find(uid);
  if (found == running_.end()) return std::nullopt;
  return found->second.name;
}

std::size_t Pool::size() const {
  std::lock_guard lock(mutex_);
  return running_.size();
}

void Pool::drain(base::Milliseconds grace) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (auto* line : {&bounded_, &waiting_, &patient_}) {
    for (const auto& operation : *line) running_.erase(operation.uid);
    line->clear();
  }
  for (auto& [uid, running] : running_)
    if (!running.finishes) running.stop.request_stop();
  idle_.wait_for(lock, grace, [this] { return active_ == 0; });
  for (auto& [uid, running] : running_) running.stop.request_stop();
}

bool Pool::may_take_bounded() const {
  return !bounded_.empty() && bounded_now_ < std::max<std::size_t>(1, options_.threads / 2);
}

Operation Pool::take() {
  const bool bounded = may_take_bounded();
  const bool patient =
      !bounded &&
      (waiting_.empty() || (!patient_.empty() && passed_over_ >= options_.passed_over_max));
  if (!bounded) passed_over_ = patient ? 0 : passed_over_ + 1;
  if (bounded) ++bounded_now_;
  auto& from = bounded ? bounded_ : patient ? patient_ : waiting_;
  Operation operation = std::move(from.front());
  from.pop_front();
  return operation;
}

void Pool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    waiting_changed_.wait(lock, [this] { return ended_ || has_next(); });
    if (ended_) return;
    Operation operation = take();
    ++active_;
    const std::stop_token cut = running_.at(operation.uid).stop.get_token();
    lock.unlock();
    operation.work(cut);
    lock.lock();
    running_.erase(operation.uid);
    if (operation.line == Operation::Line::kBounded) --bounded_now_;
    lock.unlock();
    finished_(operation.key);
    lock.lock();
    // Only now: whoever waits for the last one finds its key told.
    if (--active_ == 0) idle_.notify_all();
  }
}

}  // namespace controller
