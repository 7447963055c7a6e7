#include "controller/cluster/tenure.h"

#include <gtest/gtest.h>

#include <ostream>

namespace controller {
namespace {

using namespace std::chrono_literals;

const base::Moment kNow{10h};

struct Case {
  const char* name;
  Tenure before;
  LeaseView lease;
  bool gained = false;
  const char* over = "";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tenure acting(base::Milliseconds ago = 2s) { return {true, 1, kNow - ago}; }
Tenure idle(base::Milliseconds ago = 2s) { return {false, 1, kNow - ago}; }

const Case kCases[] = {
    {"nobody_has_it_yet", {}, {"l", false, 0, 0, ""}},
    {"another_has_had_it_all_along", {}, {"l", false, 0, 0, "you"}},
    {"it_becomes_ours", {}, {"l", true, 1, 1, "me"}, true},
    {"it_lapsed_for_a_moment", acting(), {"l", true, 1, 2, "me"}, true},
    {"it_is_renewed", acting(), {"l", true, 1, 1, "me"}},
    {"it_could_not_be_renewed", acting(), {"l", false, 1, 1, "me"}},
    {"it_still_cannot", idle(59min), {"l", false, 1, 1, "me"}},
    {"it_can_again_and_was_nobody_elses", idle(59min), {"l", true, 1, 2, "me"}, true},
    {"it_cannot_for_too_long",
     idle(61min),
     {"l", false, 1, 1, "me"},
     false,
     "the lease l could not be renewed for too long"},
    {"somebody_took_it_away_from_us_all", acting(), {"l", false, 1, 1, ""}},
    {"another_took_it",
     idle(20s),
     {"l", false, 1, 1, "you"},
     false,
     "you holds the lease l now; beginning anew"},
    {"another_took_it_and_gave_it_back",
     idle(20s),
     {"l", true, 2, 2, "me"},
     false,
     "the lease l was another's for a while; beginning anew"},
    {"the_same_without_our_knowing_that_it_lapsed",
     acting(20s),
     {"l", true, 2, 2, "me"},
     false,
     "the lease l was another's for a while; beginning anew"},
};

class TenureTest : public testing::TestWithParam<Case> {};

TEST_P(TenureTest, EndsWhenAnotherActed) {
  const Case& c = GetParam();
  const TenureNews news = after_turn(c.before, c.lease, "me", kNow);
  EXPECT_EQ(news.gained, c.gained);
  EXPECT_EQ(news.over ? news.over->message : "", c.over);
  const bool acts = c.lease.may_act && !news.over;
  EXPECT_EQ(news.tenure.acting, acts);
  EXPECT_EQ(news.tenure.spells, acts ? c.lease.spells : c.before.spells);
  EXPECT_EQ(news.tenure.acted_at, acts ? kNow : c.before.acted_at);
}

INSTANTIATE_TEST_SUITE_P(, TenureTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
