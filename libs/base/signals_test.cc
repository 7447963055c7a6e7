#include "libs/base/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace base {
namespace {

TEST(Signals, AllHaveANameByWhichTheyAreFoundAgain) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(40), "SIG40") << "the kernel knows it, though it has no name";
  for (int number = 1; number < NSIG; ++number)
    EXPECT_EQ(signal_number(signal_name(number)), number) << number;
  for (const char* none :
       {"", "TERM", "SIG", "SIGNOTHING", "SIG0", "SIG65", "SIG-1", "sigterm", "1"})
    EXPECT_FALSE(signal_number(none)) << none;
}

}  // namespace
}  // namespace base
