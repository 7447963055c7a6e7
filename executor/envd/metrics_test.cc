#include "executor/envd/metrics.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

TEST(Metrics, AddUpTimes) {
  const auto times = parse_cpu_times("cpu  10 1 5 80 4 1 2 3 9 9\ncpu0 1 1 1 1\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->busy, 22u);
  EXPECT_EQ(times->total, 106u);
  EXPECT_FALSE(parse_cpu_times("cpu 1"));
  EXPECT_FALSE(parse_cpu_times(""));
}

TEST(Metrics, ComputeTheShareSinceTheLastLook) {
  EXPECT_DOUBLE_EQ(cpu_used_percent({10, 100}, {60, 200}, 2), 100.0);
  EXPECT_DOUBLE_EQ(cpu_used_percent({10, 100}, {10, 100}, 2), 0.0);
  EXPECT_DOUBLE_EQ(cpu_used_percent({10, 100}, {5, 50}, 2), 0.0);
}

TEST(Metrics, ReadMemory) {
  const Memory memory =
      parse_memory("MemTotal: 2048 kB\nMemFree: 10 kB\nMemAvailable: 1024 kB\nCached: 512 kB\n");
  EXPECT_EQ(memory.total, 2048u * 1024);
  EXPECT_EQ(memory.used, 1024u * 1024);
  EXPECT_EQ(memory.cache, 512u * 1024);
  EXPECT_EQ(parse_memory("").total, 0u);
}

}  // namespace
}  // namespace executor
