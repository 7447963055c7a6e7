#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace aio {

// The event loop of a program: one thread runs every coroutine, so what stands between two
// co_awaits is atomic.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Executor executor();
  // Runs until `main` returns and hands back what it returned; what else still runs is dropped.
  int run(Task<int> main);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Task<> sleep_for(base::Milliseconds duration);
Task<> sleep_until(base::Moment moment);
// The first of `signals` that arrives. Until it is awaited they act as usual.
Task<int> wait_for_signal(std::initializer_list<int> signals);

// Runs both at once. race: until the first returns (0 or 1 tells which), and the other is
// cancelled; both: until both returned.
Task<int> race(Task<> first, Task<> second);
Task<> both(Task<> first, Task<> second);

template <typename T>
Task<> keep_result(Task<T> task, std::optional<T>& kept) {
  kept.emplace(co_await std::move(task));
}

// What `task` returned, or nothing when it took longer and was cancelled.
template <typename T>
Task<std::optional<T>> within(Task<T> task, base::Milliseconds limit) {
  std::optional<T> kept;
  const int first = co_await race(keep_result(std::move(task), kept), sleep_for(limit));
  if (first != 0) kept.reset();  // It may still have returned, that it was cancelled.
  co_return std::move(kept);
}

// Wakes those who wait. Nobody is woken by a notification from before it waited: look at the
// condition first, then wait, in a loop.
class Condition {
 public:
  explicit Condition(Executor executor);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  Task<> wait();
  void notify_all();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Owns coroutines that run beside their owner. Destroying it cancels them, and they unwind when the
// loop comes to it: what they refer to must outlive `co_await wait()`, or be owned by them.
class TaskGroup {
 public:
  explicit TaskGroup(Executor executor);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(Task<> task);
  void cancel();  // All that run now.
  Task<> wait();  // Until none runs.
  std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace aio
