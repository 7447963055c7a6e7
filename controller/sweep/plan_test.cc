#include "controller/sweep/plan.h"

#include <gtest/gtest.h>

#include <ostream>

namespace controller {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;
  e2b::SandboxInfo sandbox;
  std::optional<api::Sandbox> owner = {};
  bool released = false;
  base::Milliseconds age = 10min;
  bool killed = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

e2b::SandboxInfo sandbox(const std::string& fleet, const std::string& nonce, int epoch,
                         const std::string& uid = "uid-1") {
  return {.id = "sb-1",
          .metadata = {{key::kFleet, fleet},
                       {key::kUid, uid},
                       {key::kNonce, nonce},
                       {key::kEpoch, std::to_string(epoch)}}};
}

api::Sandbox owner(const std::string& bound, const std::string& nonce, int epoch) {
  api::Sandbox sandbox{.metadata = {.key = {"default", "a"}, .uid = "uid-1"}};
  sandbox.status.sandbox_id = bound;
  sandbox.status.epoch = bound.empty() ? 0 : epoch;
  if (!nonce.empty())
    sandbox.metadata.annotations[std::string(api::kAttemptAnnotation)] =
        api::to_text(api::Attempt{nonce, epoch});
  return sandbox;
}

const Case kCases[] = {
    {"an_orphan_past_its_grace", sandbox("ours", "n1", 1), {}, false, 10min, true},    // I-ORPH
    {"an_orphan_within_its_grace", sandbox("ours", "n1", 1), {}, false, 1min, false},  // I-GRACE
    {"another_fleets", sandbox("theirs", "n1", 1), {}, false, 10min, false},           // I-FOREIGN
    {"nobodys", {.id = "sb-1"}, {}, false, 10min, false},                              // I-FOREIGN
    {"without_uid", sandbox("ours", "n1", 1, ""), {}, false, 10min, false},
    {"released", sandbox("ours", "n1", 1), {}, true, 10min, false},
    {"bound", sandbox("ours", "n1", 1), owner("sb-1", "n1", 1), false, 10min, false},
    {"bound_whatever_its_nonce", sandbox("ours", "n0", 1), owner("sb-1", "n1", 1), false, 10min,
     false},
    {"made_by_the_attempt", sandbox("ours", "n1", 1), owner("", "n1", 1), false, 10min, false},
    {"of_an_attempt_before", sandbox("ours", "n0", 1), owner("", "n1", 1), false, 10min,
     true},  // S5
    {"surplus_beside_a_bound_one", sandbox("ours", "n0", 1), owner("sb-2", "n1", 1), false, 10min,
     true},
    {"of_a_lower_epoch", sandbox("ours", "n0", 1), owner("sb-2", "n1", 2), false, 10min, true},
    {"of_a_higher_epoch", sandbox("ours", "n9", 3), owner("sb-2", "n1", 2), false, 10min, false},
    {"of_one_that_lost_its_attempt", sandbox("ours", "n1", 1), owner("", "", 0), false, 10min,
     false},
};

class Sweep : public testing::TestWithParam<Case> {};

TEST_P(Sweep, KillsOnlyWhatNothingOwns) {
  const Case& c = GetParam();
  Fleet fleet{.id = "ours", .sandboxes = {c.sandbox}, .now = base::Moment(24h)};
  if (c.owner) fleet.resources.push_back(std::make_shared<api::Sandbox>(*c.owner));
  if (c.released) fleet.released.insert("sb-1");
  fleet.first_seen["sb-1"] = fleet.now - c.age;
  EXPECT_EQ(!plan_sweep(fleet).empty(), c.killed);
}

INSTANTIATE_TEST_SUITE_P(, Sweep, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(SweepPlan, SparesWhatIsBoundByASandboxOfAnotherUid) {
  Fleet fleet{
      .id = "ours", .sandboxes = {sandbox("ours", "n1", 1, "uid-0")}, .now = base::Moment(24h)};
  fleet.first_seen["sb-1"] = base::Moment(1h);
  fleet.resources.push_back(std::make_shared<api::Sandbox>(owner("sb-1", "n1", 1)));
  EXPECT_TRUE(plan_sweep(fleet).empty());
}

}  // namespace
}  // namespace controller
