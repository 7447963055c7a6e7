#include "controller/reconcile/identity.h"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>

namespace controller {
namespace {

struct Case {
  const char* name;
  std::int64_t status_run, status_incarnation;
  wire::Identity marker;
  bool new_run, rolled_back;
  std::int64_t incarnation, run;
  const char* news = "";  // Of what kind.
  std::int64_t epoch = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"first_start", 0, 1, {}, true, false, 1, 1},
    {"first_start_told_before_a_crash", 0, 1, {"u", 1, 1, 1}, true, false, 1, 2},
    {"first_start_of_a_new_epoch", 0, 2, {}, true, false, 2, 1, "recreated", 2},
    {"resume_in_a_new_epoch", 3, 2, {"u", 2, 2, 3}, true, false, 2, 4, "", 2},
    {"resume", 3, 1, {"u", 1, 1, 3}, true, false, 1, 4},
    {"same_run_after_a_restart", 3, 1, {"u", 1, 1, 3}, false, false, 1, 3},
    {"crash_between_marker_and_status", 3, 1, {"u", 1, 1, 4}, false, false, 1, 4},
    {"roll_back", 3, 1, {"u", 1, 1, 2}, true, false, 2, 4, "rolledBack"},
    {"roll_back_across_incarnations", 7, 2, {"u", 1, 1, 3}, true, false, 3, 8, "rolledBack"},
    {"roll_back_seen_by_its_save", 3, 1, {"u", 1, 1, 3}, true, true, 2, 4, "rolledBack"},
    {"missing_marker", 3, 1, {}, true, false, 2, 4, "lost"},
    {"anothers_state", 3, 1, {"v", 1, 1, 9}, true, false, 2, 4, "restored"},
    {"forged_run",
     3,
     1,
     {"u", 1, 1, std::numeric_limits<std::int64_t>::max()},
     true,
     false,
     2,
     4,
     "restored"},
    {"forged_run_on_the_first_start",
     0,
     1,
     {"u", 1, 1, std::numeric_limits<std::int64_t>::max()},
     true,
     false,
     1,
     1},
    {"another_epochs_state", 3, 1, {"u", 2, 1, 9}, true, false, 2, 4, "restored"},
};

class Judge : public testing::TestWithParam<Case> {};

TEST_P(Judge, ComparesTheMarkerWithTheStatus) {
  const Case& c = GetParam();
  api::Sandbox wanted{.metadata = {.uid = "u"}};
  wanted.status.epoch = c.epoch;
  wanted.status.run = c.status_run;
  wanted.status.incarnation = c.status_incarnation;
  const Judgement judged = judge(wanted, c.marker, c.new_run, c.rolled_back);
  EXPECT_EQ(judged.incarnation, c.incarnation);
  EXPECT_EQ(judged.run, c.run);
  EXPECT_EQ(judged.news ? judged.news->kind : "", c.news);
}

INSTANTIATE_TEST_SUITE_P(, Judge, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
