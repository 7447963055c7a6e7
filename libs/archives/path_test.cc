#include "libs/archives/path.h"

#include <gmock/gmock.h>

namespace archives {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Paths, AreTakenApart) {
  EXPECT_THAT(*names_of("a/b"), ElementsAre("a", "b"));
  EXPECT_THAT(*names_of("./a//b/."), ElementsAre("a", "b"));
  EXPECT_THAT(*names_of("./"), IsEmpty());
  EXPECT_THAT(*names_of("..a/b.."), ElementsAre("..a", "b.."));
}

TEST(Paths, ThatLeadOutsideAreRefused) {
  for (const char* path : {"/", "/etc/passwd", "..", "../a", "a/..", "a/../b", "./.."})
    EXPECT_EQ(names_of(path).error().fault, Fault::kUnfit) << path;
}

TEST(Paths, HaveLimits) {
  EXPECT_TRUE(names_of(std::string(kNameBytesMax, 'a')));
  EXPECT_EQ(names_of(std::string(kNameBytesMax + 1, 'a')).error().fault, Fault::kTooLarge);
  std::string deep;
  for (std::size_t i = 0; i < kDepthMax; ++i) deep += "a/";
  EXPECT_TRUE(names_of(deep));
  EXPECT_EQ(names_of(deep + "a").error().fault, Fault::kTooLarge);
  EXPECT_EQ(names_of(std::string(kPathBytesMax + 1, '/').replace(0, 1, "a")).error().fault,
            Fault::kTooLarge);
}

TEST(Links, AreToldWhetherTheyLeadOut) {
  EXPECT_FALSE(leads_out({"a"}, "b"));
  EXPECT_FALSE(leads_out({"a"}, "../b"));
  EXPECT_FALSE(leads_out({}, "a/../b"));
  EXPECT_TRUE(leads_out({"a"}, "../../b"));
  EXPECT_TRUE(leads_out({}, ".."));
  EXPECT_TRUE(leads_out({"a"}, "/b"));
}

}  // namespace
}  // namespace archives
