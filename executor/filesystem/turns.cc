#include "executor/filesystem/turns.h"

#include "executor/filesystem/seam.h"

namespace executor {

struct Turns::Place::Waiter {
  explicit Waiter(aio::Executor executor) : moved(std::move(executor)) {}
  aio::Condition moved;
};

Turns::Place::Place(Turns& turns, std::string key, std::shared_ptr<Waiter> waiter)
    : turns_(&turns), key_(std::move(key)), waiter_(std::move(waiter)) {}

Turns::Place& Turns::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  leave();
  turns_ = other.turns_;
  key_ = std::move(other.key_);
  waiter_ = std::move(other.waiter_);
  return *this;
}

Turns::Place::~Place() { leave(); }

void Turns::Place::leave() {
  if (!waiter_) return;
  const auto line = turns_->lines_.find(key_);
  line->second.remove(waiter_);
  --turns_->waiting_;
  if (line->second.empty()) {
    turns_->lines_.erase(line);
  } else {
    line->second.front()->moved.notify_all();
  }
  waiter_.reset();
}

aio::Task<bool> Turns::Place::wait(std::stop_token stop) {
  const auto waiter = waiter_;
  const std::stop_callback woken(stop, [&waiter] { waiter->moved.notify_all(); });
  while (!stop.stop_requested()) {
    if (turns_->lines_.at(key_).front() == waiter || left_out(Mechanism::kTurns)) co_return true;
    co_await waiter->moved.wait();
  }
  co_return false;
}

std::optional<Turns::Place> Turns::join(const std::string& key) {
  if (waiting_ >= kWaitingInAllMax) return std::nullopt;
  auto& line = lines_[key];
  if (line.size() >= kWaitingMax) return std::nullopt;
  line.push_back(std::make_shared<Place::Waiter>(executor_));
  ++waiting_;
  return Place(*this, key, line.back());
}

}  // namespace executor
