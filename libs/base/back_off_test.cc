#include "libs/base/back_off.h"

#include <gtest/gtest.h>

namespace base {
namespace {

using namespace std::chrono_literals;

TEST(BackOff, DoublesUpToAnEndAndLeavesHalfToChance) {
  const BackOff back_off{250ms, 10s};
  EXPECT_EQ(back_off.after(1), 250ms);
  EXPECT_EQ(back_off.after(1, 1), 125ms);
  EXPECT_EQ(back_off.after(1, 0.5), 187ms);
  EXPECT_EQ(back_off.after(2), 500ms);
  EXPECT_EQ(back_off.after(5), 4s);
  EXPECT_EQ(back_off.after(7), 10s);
  EXPECT_EQ(back_off.after(1'000'000), 10s);
  EXPECT_EQ(back_off.after(1'000'000, 1), 5s);
  EXPECT_EQ(back_off.after(0), 250ms) << "none is no less than one";
}

}  // namespace
}  // namespace base
