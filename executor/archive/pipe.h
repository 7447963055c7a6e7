#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "libs/aio/loop.h"
#include "libs/aio/task.h"

namespace executor {

// Bytes on their way between the loop and a thread that blocks, in one direction: who is faster
// waits. Held by a shared_ptr, whose last holder lets go on the loop.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  static constexpr std::size_t kBytesMax = 1u << 20;  // Beyond it the writer waits.

  explicit Pipe(aio::Executor executor) : executor_(executor), moved_(std::move(executor)) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // On the thread. False, and nothing: it was broken off. Empty: the end.
  bool put(std::string_view bytes);
  std::optional<std::string> get();

  // On the loop, the same.
  aio::Task<bool> give(std::string bytes);
  aio::Task<std::optional<std::string>> take();

  // On either. What came before the end is still read; what was broken off is of no use to anybody.
  void end();
  void break_off();

 private:
  bool full() const { return held_ >= kBytesMax; }
  bool readable() const { return !pieces_.empty() || ended_ || broken_; }
  void push(std::string bytes);
  std::optional<std::string> pop();
  void wake();

  aio::Executor executor_;
  aio::Condition moved_;  // For the loop.
  std::mutex mutex_;
  std::condition_variable changed_;  // For the thread.
  std::deque<std::string> pieces_;
  std::size_t held_ = 0;
  bool ended_ = false, broken_ = false;
};

}  // namespace executor
