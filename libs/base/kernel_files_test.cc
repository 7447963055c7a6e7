#include "libs/base/kernel_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace base {
namespace {

TEST(ProcessFacts, AreReadPastAnyName) {
  const std::string rest = " S 1 7 8 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 100 200";
  for (const char* name : {"envd", "a b", "x) R 1 (y", ")", ""}) {
    const auto found = parse_process("7 (" + std::string(name) + ")" + rest);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(*found, (ProcessFacts{7, 1, 7, 8, 'S', 4242})) << name;
    EXPECT_FALSE(found->ended());
  }
}

TEST(ProcessFacts, TellWhoHasEnded) {
  for (const char* state : {"Z", "X"})
    EXPECT_TRUE(
        parse_process("7 (x) " + std::string(state) + " 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 42")
            ->ended());
}

TEST(ProcessFacts, AreNoneWhenTheTextIsCut) {
  for (const char* text : {"", "7", "7 (envd)", "7 (envd) S 1 7", "7 (envd) SS 1"})
    EXPECT_FALSE(parse_process(text)) << text;
}

TEST(ProcessFacts, AreThereForALivingProcess) {
  const auto me = look_at_process(::getpid());
  ASSERT_TRUE(me);
  EXPECT_EQ(me->pid, ::getpid());
  EXPECT_EQ(me->parent, ::getppid());
  EXPECT_GT(me->start, 0u);
  EXPECT_TRUE(runs(::getpid()));
  EXPECT_FALSE(runs(0));
}

TEST(Setting, IsWrittenOnlyWhereThereIsOne) {
  EXPECT_TRUE(write_setting("/proc/self/comm", "base_test"));
  const auto missing = write_setting("/proc/self/no-such-setting", "1");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("no-such-setting"), std::string::npos);
}

}  // namespace
}  // namespace base
