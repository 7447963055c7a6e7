#include "controller/attach/peer_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ostream>

namespace controller {
namespace {

struct Case {
  const char* name;
  base::Peer peer;
  std::optional<gid_t> group;
  bool may;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"we_ourselves", {.uid = 1000, .gid = 1}, {}, true},
    {"root", {.uid = 0, .gid = 0}, {}, true},
    {"another", {.uid = 1001, .gid = 1000}, {}, false},
    {"another_of_the_group", {.uid = 1001, .gid = 50}, 50, true},
    {"another_who_is_in_the_group_too", {.uid = 1001, .gid = 1, .groups = {4, 50}}, 50, true},
    {"another_of_other_groups", {.uid = 1001, .gid = 1, .groups = {4, 51}}, 50, false},
    {"roots_group_is_a_group", {.uid = 1001, .gid = 0}, 50, false},
};

class MayAsk : public testing::TestWithParam<Case> {};

TEST_P(MayAsk, IsSaidOfWhoConnected) {
  const Case& c = GetParam();
  EXPECT_EQ(may_ask(c.peer, 1000, c.group), c.may);
}

INSTANTIATE_TEST_SUITE_P(, MayAsk, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(PeerAccess, KnowsPeopleByTheirNumber) {
  PeerAccess access{{}};
  EXPECT_EQ(*access.admit({.peer = base::Peer{.uid = ::geteuid()}}, {"team-a", "box"}, {}),
            "uid:" + std::to_string(::geteuid()));
  const auto refused =
      access.admit({.peer = base::Peer{.uid = ::geteuid() + 1}}, {"team-a", "box"}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kDenied);
}

TEST(PeerAccess, BelievesNoTokenInPlaceOfAPeer) {
  PeerAccess access{{}};
  const auto refused = access.admit({"10.0.0.1", "good"}, {"team-a", "box"}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace controller
