#include "local_e2b/faults/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace local_e2b {
namespace {

using ::testing::HasSubstr;

TEST(Faults, AreReadFromAFlag) {
  const auto rule = parse_fault("pause:latency:ms=800:count=3:p=0.5");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->operation, "pause");
  EXPECT_EQ(rule->kind, FaultKind::kLatency);
  EXPECT_EQ(rule->delay, base::Milliseconds(800));
  EXPECT_EQ(rule->count, 3);
  EXPECT_EQ(rule->probability, 0.5);
}

TEST(Faults, SayWhatIsWrongWithAFlag) {
  const std::pair<const char*, const char*> cases[] = {
      {"create", "no kind"},
      {"fly:latency:ms=1", "the operations are all, create"},
      {"create:slow", "the kinds are"},
      {"create:latency", "latency needs ms"},
      {"create:lost-reply:p=2", "p is a number from 0 to 1"},
      {"create:lost-reply:p=", "p is a number from 0 to 1"},
      {"create:lost-reply:p=nan", "p is a number from 0 to 1"},
      {"create:lost-reply:count=0", "count is a number from 1"},
      {"create:lost-reply:ms=-1", "ms is a number"},
      {"create:lost-reply:q=1", "no option q"},
      {"data:late-effect:ms=1", "data knows latency and lost-reply"}};
  for (const auto& [text, why] : cases) {
    const auto rule = parse_fault(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_THAT(rule.error().message, HasSubstr(why));
    EXPECT_THAT(rule.error().message, HasSubstr(text));
  }
}

std::vector<bool> losses(std::uint64_t seed) {
  Faults faults(seed);
  EXPECT_TRUE(faults.set({*parse_fault("create:lost-reply:p=0.5")}));
  std::vector<bool> lost;
  for (int i = 0; i < 64; ++i) lost.push_back(faults.draw("create").lost_reply);
  return lost;
}

TEST(Faults, RepeatWithTheirSeed) {
  EXPECT_EQ(losses(7), losses(7));
  EXPECT_NE(losses(7), losses(8));
}

TEST(Faults, HitTheirOperationAsOftenAsAsked) {
  Faults faults(1);
  ASSERT_TRUE(faults.set(
      {*parse_fault("kill:late-effect:ms=30:count=2"), *parse_fault("all:latency:ms=5")}));
  EXPECT_EQ(to_text(faults.draw("get")), "delay 5 ms");
  EXPECT_TRUE(faults.draw("kill").late_effect);
  EXPECT_EQ(faults.draw("kill").delay, base::Milliseconds(35));
  EXPECT_EQ(to_text(faults.draw("kill")), "delay 5 ms");
  ASSERT_TRUE(faults.set({}));
  EXPECT_TRUE(faults.draw("kill").none());
}

TEST(Faults, AreBounded) {
  Faults faults(1);
  EXPECT_FALSE(faults.set(std::vector<FaultRule>(kFaultRulesMax + 1)));
}

}  // namespace
}  // namespace local_e2b
