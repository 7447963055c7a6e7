#include "agentd/way/hearing.h"

#include <gtest/gtest.h>

namespace agentd {
namespace {

using namespace std::chrono_literals;

TEST(Hearing, IsGoodOnceAMirrorWasComplete) {
  Hearing hearing(90s);
  EXPECT_FALSE(hearing.hears({}, false, base::Moment(0s)));
  EXPECT_FALSE(hearing.hears({.failures = 3}, false, base::Moment(5s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .failures = 3}, true, base::Moment(6s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .failures = 3}, true, base::Moment(1h))) << "all is quiet";
}

TEST(Hearing, EndsWhenNothingCameForLongAfterACut) {
  Hearing hearing(90s);
  EXPECT_TRUE(hearing.hears({.lists = 1}, true, base::Moment(0s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .failures = 1}, true, base::Moment(10s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .failures = 9}, true, base::Moment(99s)));
  EXPECT_FALSE(hearing.hears({.lists = 1, .failures = 10}, true, base::Moment(100s)));
  EXPECT_FALSE(hearing.hears({.lists = 1, .failures = 10}, true, base::Moment(200s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .events = 1, .failures = 10}, true, base::Moment(201s)));
}

TEST(Hearing, TakesACutAfterWhichSomethingCameForNothing) {
  Hearing hearing(90s);
  EXPECT_TRUE(hearing.hears({.lists = 1}, true, base::Moment(0s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .failures = 1}, true, base::Moment(10s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .events = 1, .failures = 1}, true, base::Moment(60s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .events = 1, .failures = 2}, true, base::Moment(110s)));
  EXPECT_TRUE(hearing.hears({.lists = 1, .events = 1, .failures = 2}, true, base::Moment(199s)));
  EXPECT_FALSE(hearing.hears({.lists = 1, .events = 1, .failures = 2}, true, base::Moment(200s)));
}

}  // namespace
}  // namespace agentd
