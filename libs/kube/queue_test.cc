#include "libs/kube/queue.h"

#include <gtest/gtest.h>

#include <thread>

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

TEST_F(QueueTest, TellsHowLongAKeyWaited) {
  queue_.add(kA);
  clock_.advance(250ms);
  ASSERT_EQ(queue_.try_next(), kA);
  EXPECT_EQ(queue_.waited(kA), 250ms);
  clock_.advance(1s);
  EXPECT_EQ(queue_.stats().oldest_work, 1s);
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

}  // namespace
}  // namespace kube
