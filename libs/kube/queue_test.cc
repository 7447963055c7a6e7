#include "libs/kube/queue.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "libs/base/testing/fake_clock.h"

namespace kube {
namespace {

using namespace std::chrono_literals;

const api::Key kA{"default", "a"}, kB{"default", "b"};

class QueueTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  Queue queue_{clock_};
};

TEST_F(QueueTest, GivesKeysInTheOrderTheyCame) {
  queue_.add(kB);
  queue_.add(kA);
  EXPECT_EQ(queue_.try_next(), kB);
  EXPECT_EQ(queue_.try_next(), kA);
  EXPECT_EQ(queue_.try_next(), std::nullopt);
}

TEST_F(QueueTest, HoldsAKeyOnce) {
  queue_.add(kA);
  queue_.add(kA);
  EXPECT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {});
  EXPECT_EQ(queue_.try_next(), std::nullopt);
}

TEST_F(QueueTest, HoldsBackAKeyInWork) {
  queue_.add(kA);
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.add(kA);
  EXPECT_EQ(queue_.try_next(), std::nullopt);
  queue_.done(kA, {});
  EXPECT_EQ(queue_.try_next(), kA);
}

TEST_F(QueueTest, ReturnsAFailedKeyAfterADelayThatDoublesToABound) {
  queue_.add(kA);
  auto delay = 5ms;
  for (int failure = 0; failure < 40; ++failure) {
    ASSERT_EQ(queue_.try_next(), kA) << failure;
    queue_.done(kA, {.failed = true});
    const auto wait = std::min<base::Milliseconds>(delay, 60s);
    clock_.advance(wait - 1ms);
    EXPECT_EQ(queue_.try_next(), std::nullopt) << failure;
    clock_.advance(1ms);
    if (delay < 60s) delay *= 2;
  }
}

TEST_F(QueueTest, ForgetsFailuresAfterASuccess) {
  queue_.add(kA);
  for (int i = 0; i < 5; ++i) {
    clock_.advance(1min);
    ASSERT_EQ(queue_.try_next(), kA);
    queue_.done(kA, {.failed = true});
  }
  clock_.advance(1min);
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {});
  queue_.add(kA);
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {.failed = true});
  clock_.advance(5ms);
  EXPECT_EQ(queue_.try_next(), kA);
}

TEST_F(QueueTest, TakesTheEarliestOfSeveralDelays) {
  queue_.add_after(kA, 10s);
  queue_.add_after(kA, 2s);
  queue_.add_after(kA, 30s);
  EXPECT_EQ(*queue_.next_due() - clock_.now(), 2s);
  clock_.advance(2s);
  EXPECT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {});
  clock_.advance(1min);
  EXPECT_EQ(queue_.try_next(), std::nullopt);
}

TEST_F(QueueTest, LooksAgainAtOnceAndNotOnceMoreForALaterDelay) {
  queue_.add_after(kA, 1s);
  queue_.add(kA);
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {.after = 0ms});
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.done(kA, {});
  clock_.advance(1min);
  EXPECT_EQ(queue_.try_next(), std::nullopt);
}

TEST_F(QueueTest, DoesNotLookAgainForADelayFromBeforeALook) {
  queue_.add_after(kA, 1'000ms);
  queue_.add(kA);
  ASSERT_EQ(queue_.try_next(), kA);
  queue_.add_after(kA, 2'000ms);  // While it is looked at: not before that look.
  queue_.done(kA, {});
  clock_.advance(1'000ms);
  EXPECT_EQ(queue_.try_next(), std::nullopt);
  clock_.advance(1'000ms);
  EXPECT_EQ(queue_.try_next(), kA);
}

TEST_F(QueueTest, TellsHowLongAKeyWaited) {
  queue_.add(kA);
  clock_.advance(250ms);
  ASSERT_EQ(queue_.try_next(), kA);
  EXPECT_EQ(queue_.waited(kA), 250ms);
  clock_.advance(1s);
  EXPECT_EQ(queue_.stats().oldest_work, 1s);
  queue_.add(kB);
  ASSERT_EQ(queue_.try_next(), kB);
  clock_.advance(1s);
  EXPECT_EQ(queue_.stats().oldest_work, 2s);
  EXPECT_EQ(queue_.stats().all_work, 3s);
}

TEST(Queue, WakesAWorkerAndLetsItGoWhenStopped) {
  base::SystemClock clock;
  Queue queue(clock);
  std::optional<api::Key> first, last = kB;
  {
    std::jthread worker([&](std::stop_token stop) {
      first = queue.next(stop);
      queue.done(*first, {});
      last = queue.next(stop);
    });
    queue.add(kA);
    while (queue.stats().adds == 0 || queue.stats().depth > 0) std::this_thread::yield();
  }
  EXPECT_EQ(first, kA);
  EXPECT_EQ(last, std::nullopt);
}

// Workers of a queue in real time that pass on what they take.
class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this](std::stop_token stop) {
        while (const auto key = queue_.next(stop)) {
          queue_.done(*key, {});
          std::lock_guard lock(mutex_);
          ++taken_;
          changed_.notify_all();
        }
      });
  }
  Queue& queue() { return queue_; }
  bool reach(int taken, base::Milliseconds within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return taken_ >= taken; });
  }

 private:
  base::SystemClock clock_;
  Queue queue_{clock_};
  std::mutex mutex_;
  std::condition_variable changed_;
  int taken_ = 0;
  std::vector<std::jthread> threads_;
};

TEST(Queue, NoticesAShortDelayWhileEveryWorkerIsIdle) {
  for (const int count : {1, 4}) {
    Workers workers(count);
    workers.queue().add_after(kB, 1h);
    for (int round = 1; round <= 20; ++round) {
      workers.queue().add_after(kA, 5ms);
      ASSERT_TRUE(workers.reach(round, 600ms)) << "round " << round << " of " << count;
    }
  }
}

TEST(Queue, HasAWorkerForEachKeyOfABurst) {
  constexpr std::size_t kKeys = 8;
  constexpr int kRounds = 200;
  base::SystemClock clock;
  Queue queue(clock);
  std::counting_semaphore<> let_go(0);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kKeys; ++i)
    threads.emplace_back([&](std::stop_token stop) {
      while (const auto key = queue.next(stop)) {
        let_go.acquire();
        queue.done(*key, {});
      }
    });
  const auto becomes = [&](std::size_t in_work) {
    const auto limit = clock.now() + 30s;
    while (queue.stats().in_work != in_work && clock.now() < limit) std::this_thread::yield();
    return queue.stats().in_work == in_work;
  };
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    for (std::size_t key = 0; key < kKeys; ++key)
      queue.add_after({"default", std::to_string(key)}, base::Milliseconds(key % 2));
    EXPECT_TRUE(becomes(kKeys)) << "a key waits although a worker is idle";
    let_go.release(kKeys);
    EXPECT_TRUE(becomes(0));
  }
  let_go.release(kKeys);  // Of a round that failed.
}

}  // namespace
}  // namespace kube
