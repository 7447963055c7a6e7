#include "local_e2b/box/blueprint.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libs/base/testing/temporary_folder.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

Blueprint plan() {
  return {.id = "box",
          .folder = "/state/boxes/box",
          .cgroup = "/cg/fleet/box",
          .executor = "/bin/executor",
          .etc = "/state/etc/1",
          .executor_baked_in = true,
          .executor_digest = "00ff",
          .extra_lowers = {"/usr/share", "/srv,:x"},
          .ids = {0x7001'0000, 0x7002'0000, 3},
          .server_pid = 42,
          .descriptors = 256,
          .fail_at = "make /dev"};
}

TEST(Blueprint, SurvivesTheWayToTheBuilder) {
  const auto back = blueprint_from_json(*base::parse_json(base::to_text(to_json(plan()))));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, plan());
}

TEST(Blueprint, IsRefusedWhenAPartIsMissing) {
  for (const char* part : {"id", "folder", "cgroup", "executor", "etc", "firstUid", "firstGid",
                           "idCount", "serverPid"}) {
    base::Json json = to_json(plan());
    json.erase(part);
    EXPECT_FALSE(blueprint_from_json(json).ok()) << part;
  }
}

TEST(Blueprint, OverlaysAFolderOnceAndOnlyIfItIsThere) {
  const base::TemporaryFolder place;
  const std::string absent = place / "absent";
  Blueprint wanted = plan();
  wanted.extra_lowers = {"/usr", absent, "/usr/share"};
  const auto overlays = overlays_of(wanted);
  EXPECT_EQ(overlays[kEtcLayer], (Overlay{"/state/etc/1", "etc"}));
  EXPECT_THAT(overlays, Contains(Overlay{"/usr", "usr"}).Times(1));
  EXPECT_THAT(overlays, Contains(Overlay{"/usr/share", "usr/share"}));
  EXPECT_EQ(std::count_if(overlays.begin(), overlays.end(),
                          [&](const Overlay& each) { return each.source == absent; }),
            0);
}

TEST(ExtraFolder, IsRefusedWhenItWouldShowTooMuch) {
  struct Case {
    std::string lower;
    const char* objection;  // Empty: allowed.
  };
  const base::TemporaryFolder place;
  const Case kCases[] = {
      {"/usr/share", ""},
      {"/", "absolute path"},
      {"usr", "absolute path"},
      {"/usr/../etc", "absolute path"},
      {"/usr/", "absolute path"},
      {place / "absent", "not a folder"},
      {"/etc/passwd", "not a folder"},
      {"/etc", "has its own"},
      {"/proc", "has its own"},
      {"/proc/self", "not a folder"},
      {"/sys/kernel", "has its own"},
      {"/usr/lib", "other boxes"},
  };
  for (const Case& each : kCases) {
    const auto objection = objection_to_lower(each.lower, "/usr/lib/state");
    EXPECT_EQ(objection.has_value(), *each.objection != '\0') << each.lower;
    if (objection) EXPECT_THAT(*objection, HasSubstr(each.objection)) << each.lower;
  }
  EXPECT_TRUE(objection_to_lower("/usr/share", "/usr")) << "nor a part of the state folder";
}

struct Counted {
  int runs = 0;
};
base::Result<base::Done> count(Counted& counted) {
  ++counted.runs;
  return base::Done{};
}
base::Result<base::Done> fail(Counted&) {
  return base::error(base::ErrorCode::kUnavailable, "no luck");
}

TEST(Steps, StopAtTheFirstFailure) {
  constexpr Step<Counted> kSteps[] = {{"one", count}, {"two", fail}, {"three", count}};
  Counted counted;
  const auto failure = run_steps(kSteps, counted, "");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step + ": " + failure->message, "two: no luck");
  EXPECT_EQ(counted.runs, 1);
  EXPECT_EQ(run_steps(kSteps, counted, "one")->step, "one");
  EXPECT_EQ(counted.runs, 1);
}

}  // namespace
}  // namespace local_e2b
