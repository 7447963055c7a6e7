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

TEST(KnownTime, IsTheLatestThatWasHeardOf) {
  KnownTime known;
  const base::WallTime early(seconds(10)), late(seconds(20));
  EXPECT_EQ(known.now(early), early);
  known.learn(late);
  EXPECT_EQ(known.now(early), late);
  known.learn(early);
  EXPECT_EQ(known.now(early), late);
  EXPECT_EQ(known.now(late + seconds(1)), late + seconds(1));
}

}  // namespace
}  // namespace executor
