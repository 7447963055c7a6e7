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
  bool notice;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"first_start", 0, 1, {}, true, false, 1, 1, false},
    {"first_start_told_before_a_crash", 0, 1, {"u", 1, 1, 1}, true, false, 1, 2, false},
    {"resume", 3, 1, {"u", 1, 1, 3}, true, false, 1, 4, false},
    {"same_run_after_a_restart", 3, 1, {"u", 1, 1, 3}, false, false, 1, 3, false},
    {"crash_between_marker_and_status", 3, 1, {"u", 1, 1, 4}, false, false, 1, 4, false},
    {"roll_back", 3, 1, {"u", 1, 1, 2}, true, false, 2, 4, true},
    {"roll_back_across_incarnations", 7, 2, {"u", 1, 1, 3}, true, false, 3, 8, true},
    {"roll_back_seen_by_its_save", 3, 1, {"u", 1, 1, 3}, true, true, 2, 4, true},
    {"missing_marker", 3, 1, {}, true, false, 2, 4, true},
    {"anothers_state", 3, 1, {"v", 1, 1, 9}, true, false, 2, 4, true},
    {"forged_run",
     3,
     1,
     {"u", 1, 1, std::numeric_limits<std::int64_t>::max()},
     true,
     false,
     2,
     4,
     true},
    {"forged_run_on_the_first_start",
     0,
     1,
     {"u", 1, 1, std::numeric_limits<std::int64_t>::max()},
     true,
     false,
     1,
     1,
     false},
    {"another_epochs_state", 3, 1, {"u", 2, 1, 9}, true, false, 2, 4, true},
};

class Judge : public testing::TestWithParam<Case> {};

TEST_P(Judge, ComparesTheMarkerWithTheStatus) {
  const Case& c = GetParam();
  api::Sandbox wanted{.metadata = {.uid = "u"}};
  wanted.status.epoch = 1;
  wanted.status.run = c.status_run;
  wanted.status.incarnation = c.status_incarnation;
  const Judgement judged = judge(wanted, c.marker, c.new_run, c.rolled_back);
  EXPECT_EQ(judged.incarnation, c.incarnation);
  EXPECT_EQ(judged.run, c.run);
  EXPECT_EQ(!judged.notice.empty(), c.notice) << judged.notice;
}

INSTANTIATE_TEST_SUITE_P(, Judge, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
