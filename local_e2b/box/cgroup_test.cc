#include "local_e2b/box/cgroup.h"

#include <gtest/gtest.h>

namespace local_e2b {
namespace {

TEST(CgroupEvents, AreReadByWholeLines) {
  EXPECT_TRUE(has_line("populated 0\nfrozen 1\n", "frozen 1"));
  EXPECT_TRUE(has_line("populated 0\nfrozen 1\n", "populated 0"));
  EXPECT_FALSE(has_line("populated 0\nfrozen 1\n", "frozen 0"));
  EXPECT_FALSE(has_line("populated 10\n", "populated 1"));
  EXPECT_FALSE(has_line("", "frozen 1"));
}

TEST(CgroupOfAProcess, IsTheBoxOrBeneathIt) {
  struct Case {
    const char* text;
    bool inside;
  };
  const Case kCases[] = {
      {"0::/fleet/box\n", true},
      {"4:memory:/x\n0::/fleet/box/inner\n", true},
      {"0::/system.slice/fleet/box\n", true},
      {"0::/fleet/box-2\n", false},
      {"0::/fleet/other\n", false},
      {"0::/\n", false},
      {"4:memory:/fleet/box\n0::/\n", false},
      {"", false},
  };
  for (const Case& each : kCases)
    EXPECT_EQ(is_in_cgroup(each.text, "fleet", "box"), each.inside) << each.text;
}

}  // namespace
}  // namespace local_e2b
