#include "local_e2b/box/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace local_e2b {
namespace {

TEST(ProcessStat, IsReadPastAnyName) {
  const std::string rest = " S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 100 200";
  for (const char* name : {"envd", "a b", "x) R 1 (y", ")", ""}) {
    const auto found = parse_stat("7 (" + std::string(name) + ")" + rest);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(*found, (ProcessState{'S', 4242})) << name;
  }
}

TEST(ProcessStat, IsNothingWhenItIsCut) {
  for (const char* text : {"", "7", "7 (envd)", "7 (envd) S 1 7", "7 (envd) SS 1"})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ProcessStat, TellsOfALivingProcess) {
  const auto me = look_at_process(::getpid());
  ASSERT_TRUE(me);
  EXPECT_GT(me->start, 0u);
  EXPECT_EQ(look_at_process(::getpid())->start, me->start);
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
