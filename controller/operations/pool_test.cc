#include "controller/operations/pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <latch>

namespace controller {
namespace {

using namespace std::chrono_literals;

Operation operation(const std::string& uid, std::function<void(std::stop_token)> work,
                    bool finishes = false) {
  return {{"default", uid}, uid, "Create", std::move(work), finishes};
}

TEST(Pool, RunsOneOperationPerSandboxAndReportsItsEnd) {
  std::latch go(1), ended(1);
  Pool pool({.threads = 2}, [&](const api::Key& key) {
    EXPECT_EQ(key.name, "u1");
    ended.count_down();
  });
  ASSERT_TRUE(pool.start(operation("u1", [&](std::stop_token) { go.wait(); })));
  EXPECT_EQ(pool.running("u1"), "Create");
  EXPECT_FALSE(pool.start(operation("u1", [](std::stop_token) {})));
  go.count_down();
  ended.wait();
  EXPECT_EQ(pool.running("u1"), std::nullopt);
}

long times_that_threads_slept() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST(Pool, WakesOneThreadForEachOperation) {
  constexpr int kOperations = 200;
  constexpr std::size_t kThreads = 64;
  Pool pool({.threads = kThreads}, [](const api::Key&) {});
  const auto run_one = [&] {
    std::latch ended(1);
    ASSERT_TRUE(pool.start(operation("u1", [&](std::stop_token) { ended.count_down(); })));
    ended.wait();
    while (pool.size() > 0) std::this_thread::yield();
  };
  run_one();  // The threads are there by then, most of them asleep.
  const long before = times_that_threads_slept();
  for (int i = 0; i < kOperations; ++i) run_one();
  EXPECT_LT(times_that_threads_slept() - before, long{kOperations} * kThreads / 4);
}

TEST(Pool, LetsThoseGoFirstThatSomebodyWaitsFor) {
  std::latch go(1), begun(1), ended(7);
  std::vector<std::string> order;  // Of the one thread.
  Pool pool({.threads = 1, .passed_over_max = 2},
            [&](const api::Key& key) { order.push_back(key.name), ended.count_down(); });
  const auto nothing = [](std::stop_token) {};
  ASSERT_TRUE(pool.start(operation("first", [&](std::stop_token) {
    begun.count_down();
    go.wait();
  })));
  begun.wait();
  for (const char* uid : {"patient-1", "patient-2"}) {
    Operation patient = operation(uid, nothing);
    patient.line = Operation::Line::kPatient;
    ASSERT_TRUE(pool.start(std::move(patient)));
  }
  for (const char* uid : {"u1", "u2", "u3", "u4"}) ASSERT_TRUE(pool.start(operation(uid, nothing)));
  go.count_down();
  ended.wait();
  EXPECT_EQ(order,
            (std::vector<std::string>{"first", "u1", "patient-1", "u2", "u3", "patient-2", "u4"}));
}

TEST(Pool, KeepsHalfOfItsThreadsFromThoseThatAreBounded) {
  std::latch go(1), hanging(2), others(2), ended(4);
  Pool pool({.threads = 4}, [](const api::Key&) {});
  for (const char* uid : {"u1", "u2", "u3", "u4"}) {
    Operation kill = operation(uid, [&](std::stop_token) {
      if (!hanging.try_wait()) hanging.count_down();
      go.wait();
      ended.count_down();
    });
    kill.line = Operation::Line::kBounded;
    ASSERT_TRUE(pool.start(std::move(kill)));
  }
  hanging.wait();
  for (const char* uid : {"u5", "u6"})
    ASSERT_TRUE(pool.start(operation(uid, [&](std::stop_token) { others.arrive_and_wait(); })));
  others.wait();
  EXPECT_EQ(ended.try_wait(), false);
  go.count_down();
  ended.wait();  // Those that had to wait, too.
}

TEST(Pool, RefusesWhenItIsFull) {
  std::latch go(1), begun(1);
  Pool pool({.threads = 1, .waiting_max = 1}, [](const api::Key&) {});
  ASSERT_TRUE(pool.start(operation("u1", [&](std::stop_token) {
    begun.count_down();
    go.wait();
  })));
  begun.wait();
  EXPECT_TRUE(pool.start(operation("u2", [](std::stop_token) {})));
  EXPECT_FALSE(pool.start(operation("u3", [](std::stop_token) {})));
  go.count_down();
}

TEST(Pool, DrainReturnsOnceEveryEndWasTold) {
  std::latch begun(1), go(1);
  std::atomic<bool> told = false;
  Pool pool({.threads = 1}, [&](const api::Key&) {
    go.wait();
    told = true;
  });
  ASSERT_TRUE(pool.start(operation("u1", [&](std::stop_token) { begun.count_down(); }, true)));
  begun.wait();
  std::jthread draining([&] {
    while (pool.running("u1")) std::this_thread::yield();
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    go.count_down();
  });
  pool.drain(30s);
  EXPECT_TRUE(told);
}

TEST(Pool, DrainCutsShortWhatMayBeAndWaitsForTheRest) {
  std::latch begun(2), cut(1), go(1);
  std::atomic<bool> finished = false;
  Pool pool({.threads = 2}, [](const api::Key&) {});
  pool.start(operation("prepare", [&](std::stop_token stop) {
    begun.count_down();
    std::stop_callback on_stop(stop, [&] { cut.count_down(); });
    cut.wait();
    go.count_down();
  }));
  pool.start(operation(
      "pause",
      [&](std::stop_token stop) {
        begun.count_down();
        go.wait();
        finished = !stop.stop_requested();
      },
      true));
  begun.wait();
  pool.drain(30s);
  EXPECT_TRUE(finished);
  EXPECT_FALSE(pool.start(operation("late", [](std::stop_token) {})));
}

}  // namespace
}  // namespace controller
