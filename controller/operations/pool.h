#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "controller/operations/operations.h"
#include "libs/base/clock.h"

namespace controller {

struct PoolOptions {
  std::size_t threads = 32;
  std::size_t waiting_max = 200'000;
  std::size_t passed_over_max = 16;  // So many go before one that can wait.
};

// Operations on a fixed number of threads.
class Pool final : public Operations {
 public:
  // `finished` runs on a thread of the pool after each one.
  Pool(PoolOptions options, std::function<void(const api::Key&)> finished);
  ~Pool() override;

  bool start(Operation operation) override;
  std::optional<std::string> running(const std::string& uid) const override;
  std::size_t size() const;

  // Takes no more, drops what has not begun, cuts short what may be, and waits for the rest, at
  // most `grace`.
  void drain(base::Milliseconds grace);

 private:
  struct Running {
    std::string name;
    bool finishes;
    std::stop_source stop;
  };
  void work();
  Operation take();
  bool has_next() const { return may_take_bounded() || !waiting_.empty() || !patient_.empty(); }
  bool may_take_bounded() const;

  const PoolOptions options_;
  const std::function<void(const api::Key&)> finished_;
  mutable std::mutex mutex_;
  std::condition_variable waiting_changed_;  // For the threads: each Operation wakes one.
  std::condition_variable idle_;             // For who drains.
  std::deque<Operation> bounded_, waiting_, patient_;
  std::size_t bounded_now_ = 0;             // Of those under way.
  std::size_t passed_over_ = 0;             // Since one of the patient went last.
  std::map<std::string, Running> running_;  // By UID; the waiting ones too.
  std::size_t active_ = 0;
  bool stopping_ = false;  // Nothing more is taken.
  bool ended_ = false;     // The threads go.
  std::vector<std::jthread> threads_;
};

}  // namespace controller
