#include "executor/archive/pipe.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace executor {

void Pipe::push(std::string bytes) {
  held_ += bytes.size();
  if (!bytes.empty()) pieces_.push_back(std::move(bytes));
}

std::optional<std::string> Pipe::pop() {
  if (broken_) return std::nullopt;
  if (pieces_.empty()) return std::string();
  std::string bytes = std::move(pieces_.front());
  pieces_.pop_front();
  held_ -= bytes.size();
  return bytes;
}

// Both sides look again.
void Pipe::wake() {
  changed_.notify_all();
  boost::asio::post(executor_, [self = shared_from_this()] { self->moved_.notify_all(); });
}

bool Pipe::put(std::string_view bytes) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !full() || broken_; });
    if (broken_) return false;
    push(std::string(bytes));
  }
  wake();
  return true;
}

std::optional<std::string> Pipe::get() {
  std::optional<std::string> bytes;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return readable(); });
    bytes = pop();
  }
  wake();
  return bytes;
}

aio::Task<bool> Pipe::give(std::string bytes) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (broken_) co_return false;
      if (!full()) {
        push(std::move(bytes));
        changed_.notify_all();
        co_return true;
      }
    }
    co_await moved_.wait();
  }
}

aio::Task<std::optional<std::string>> Pipe::take() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (readable()) {
        std::optional<std::string> bytes = pop();
        changed_.notify_all();
        co_return bytes;
      }
    }
    co_await moved_.wait();
  }
}

void Pipe::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake();
}

void Pipe::break_off() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    pieces_.clear();
    held_ = 0;
  }
  wake();
}

}  // namespace executor
