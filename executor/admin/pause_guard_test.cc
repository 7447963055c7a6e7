#include "executor/admin/pause_guard.h"

#include <gtest/gtest.h>

#include "libs/base/testing/fake_clock.h"

namespace executor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const base::Moment kStart(seconds(1000));

TEST(PauseGuard, LapsesOnceAfterItsDeadlineInAwakeTime) {
  PauseGuard guard;
  EXPECT_FALSE(guard.quiesced());
  guard.quiesce(seconds(5), kStart);
  EXPECT_TRUE(guard.quiesced());
  EXPECT_FALSE(guard.look(kStart + seconds(2)));
  EXPECT_FALSE(guard.look(kStart + seconds(3600))) << "a frozen hour counts as two seconds";
  EXPECT_TRUE(guard.quiesced());
  EXPECT_TRUE(guard.look(kStart + seconds(3601)));
  EXPECT_FALSE(guard.quiesced());
  EXPECT_FALSE(guard.look(kStart + seconds(3700)));
}

TEST(PauseGuard, AnotherQuiesceBeginsAnew) {
  PauseGuard guard;
  guard.quiesce(seconds(2), kStart);
  EXPECT_FALSE(guard.look(kStart + milliseconds(1900)));
  guard.quiesce(seconds(2), kStart + milliseconds(1900));
  EXPECT_FALSE(guard.look(kStart + milliseconds(3800)));
  guard.thaw();
  EXPECT_FALSE(guard.quiesced());
}

}  // namespace
}  // namespace executor
