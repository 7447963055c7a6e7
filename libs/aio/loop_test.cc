#include "libs/aio/loop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "libs/aio/background.h"

namespace aio {
namespace {

using std::chrono::milliseconds;

Task<int> one() { co_return 1; }

TEST(Loop, RunsUntilMainReturns) {
  Loop loop;
  EXPECT_EQ(loop.run(one()), 1);
}

Task<int> wait_for_ever(Executor executor) {
  Condition never(executor);
  co_await never.wait();
  co_return 7;
}

Task<int> limits_waits(Executor executor) {
  EXPECT_EQ(co_await within(one(), milliseconds(1000)), 1);
  EXPECT_EQ(co_await within(wait_for_ever(executor), milliseconds(5)), std::nullopt);
  co_return 0;
}
TEST(Loop, LimitsHowLongATaskMayTake) {
  Loop loop;
  loop.run(limits_waits(loop.executor()));
}

Task<> count_then_wait(int& count, Condition& signal) {
  ++count;
  co_await signal.wait();
  ++count;
}

Task<int> group_waits(Executor executor) {
  int count = 0;
  Condition signal(executor);
  TaskGroup group(executor);
  for (int i = 0; i < 3; ++i) group.spawn(count_then_wait(count, signal));
  co_await sleep_for(milliseconds(1));
  EXPECT_EQ(count, 3);
  EXPECT_EQ(group.size(), 3u);
  signal.notify_all();
  co_await group.wait();
  EXPECT_EQ(count, 6);
  EXPECT_EQ(group.size(), 0u);
  co_return 0;
}
TEST(TaskGroup, WaitsForItsTasks) {
  Loop loop;
  loop.run(group_waits(loop.executor()));
}

Task<> note_end(std::shared_ptr<int> alive) {
  co_await sleep_for(std::chrono::hours(1));
  *alive = -1;
}

Task<int> group_cancels(Executor executor) {
  const auto alive = std::make_shared<int>(0);
  {
    TaskGroup group(executor);
    for (int i = 0; i < 3; ++i) group.spawn(note_end(alive));
    co_await sleep_for(milliseconds(1));
    EXPECT_EQ(alive.use_count(), 4);
  }
  while (alive.use_count() > 1) co_await sleep_for(milliseconds(1));
  EXPECT_EQ(*alive, 0);
  co_return 0;
}
TEST(TaskGroup, CancelsWhatRunsWhenDestroyed) {
  Loop loop;
  loop.run(group_cancels(loop.executor()));
}

base::Result<int> thread_hash() {
  return static_cast<int>(std::hash<std::thread::id>()(std::this_thread::get_id()) & 0xffff);
}

Task<int> runs_elsewhere(Background& background) {
  const auto there = co_await background.run(thread_hash);
  EXPECT_TRUE(there);
  EXPECT_NE(*there, *thread_hash());
  const auto failed = co_await background.run(
      [] { return base::Result<int>(base::error(base::ErrorCode::kNotFound, "nothing")); });
  EXPECT_EQ(failed.error().code, base::ErrorCode::kNotFound);
  co_return 0;
}
TEST(Background, RunsWorkOnAnotherThread) {
  Loop loop;
  Background background(1);
  loop.run(runs_elsewhere(background));
}

// Work that goes on until it is let go.
struct Held {
  std::mutex mutex;
  std::atomic<int> begun = 0;  // On a thread.
  int handed_in = 0, done = 0;
};
Task<> hold(Background& background, Held& held) {
  ++held.handed_in;
  const auto worked = co_await background.run([&held]() -> base::Result<int> {
    ++held.begun;
    std::lock_guard lock(held.mutex);
    return 1;
  });
  EXPECT_TRUE(worked);
  ++held.done;
}

Task<int> bounds_waiting(Executor executor, Background& background) {
  Held held;
  TaskGroup group(executor);
  {
    std::unique_lock lock(held.mutex);
    group.spawn(hold(background, held));
    while (held.begun != 1) co_await sleep_for(milliseconds(1));  // It waits no more.
    group.spawn(hold(background, held));
    while (held.handed_in != 2) co_await sleep_for(milliseconds(1));
    const auto refused = co_await background.run(thread_hash);
    EXPECT_FALSE(refused);
    if (!refused) {
      EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
    }
  }
  co_await group.wait();
  EXPECT_EQ(held.done, 2);
  co_return 0;
}
TEST(Background, RefusesWhenTooMuchWaits) {
  Loop loop;
  Background background(1, 1);
  loop.run(bounds_waiting(loop.executor(), background));
}

Task<> raise_soon() {
  co_await sleep_for(milliseconds(5));
  ::raise(SIGUSR1);
}
Task<int> sees_signal(Executor executor) {
  TaskGroup group(executor);
  group.spawn(raise_soon());
  co_return co_await wait_for_signal({SIGUSR1, SIGUSR2});
}
TEST(Loop, WaitsForASignal) {
  Loop loop;
  EXPECT_EQ(loop.run(sees_signal(loop.executor())), SIGUSR1);
}

}  // namespace
}  // namespace aio
