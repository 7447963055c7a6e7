#include "cli/resources/wait.h"

#include <gtest/gtest.h>

#include <functional>

#include "libs/base/time.h"

namespace cli {
namespace {

const base::WallTime kNow = *base::parse_rfc3339("2026-11-29T12:00:00Z");

api::Sandbox ready_sandbox() {
  api::Sandbox sandbox;
  sandbox.metadata = {.key = {"default", "demo"}, .uid = "uid-1", .generation = 2};
  sandbox.status.conditions = {{"Ready", "True", "Ready", "", 2, kNow - base::Seconds(30)}};
  return sandbox;
}

struct ProgressCase {
  const char* name;
  api::DesiredState wished;
  std::function<void(api::Sandbox&)> change;
  Progress::Verdict verdict;
};
TEST(Progress, IsReachedOnlyByWhatTheControllerSawOfThisGeneration) {
  using api::DesiredState;
  using Verdict = Progress::Verdict;
  const auto paused = [](api::Sandbox& s) {
    s.spec.desired_state = DesiredState::kPaused;
    s.status.conditions = {{"Paused", "True", "Paused", "", 2, kNow}};
  };
  const ProgressCase cases[] = {
      {"ready", DesiredState::kRunning, [](auto&) {}, Verdict::kReached},
      {"ready_of_before", DesiredState::kRunning, [](auto& s) { s.metadata.generation = 3; },
       Verdict::kNotYet},
      {"wish_not_taken", DesiredState::kPaused, [](auto&) {}, Verdict::kNotYet},
      {"paused", DesiredState::kPaused, paused, Verdict::kReached},
      {"terminating", DesiredState::kTerminated,
       [](auto& s) { s.spec.desired_state = DesiredState::kTerminated; }, Verdict::kNotYet},
      {"terminated", DesiredState::kTerminated,
       [](auto& s) {
         s.spec.desired_state = DesiredState::kTerminated;
         s.status.terminated_time = kNow;
       },
       Verdict::kReached},
      {"stalled", DesiredState::kRunning,
       [](auto& s) {
         s.status.conditions = {{"Stalled", "True", "TemplateNotFound", "no \"base\"", 2, kNow}};
       },
       Verdict::kStalled},
      {"ended", DesiredState::kRunning,
       [](auto& s) { s.status.ended_by = api::EndedBy::kMaxLifetime; }, Verdict::kEnded},
      {"ended_meanwhile", DesiredState::kPaused,
       [paused](auto& s) {
         paused(s);
         s.status.ended_by = api::EndedBy::kShutdownTime;
       },
       Verdict::kEnded},
      {"may_be_spared", DesiredState::kRunning,
       [](auto& s) {
         s.status.conditions = {};
         s.status.ended_by = api::EndedBy::kIdle;
       },
       Verdict::kNotYet},
      {"not_spared", DesiredState::kRunning,
       [](auto& s) {
         s.status.ended_by = api::EndedBy::kIdle;
         s.status.terminated_time = kNow;
       },
       Verdict::kEnded},
      {"terminated_after_it_ended", DesiredState::kTerminated,
       [](auto& s) {
         s.spec.desired_state = DesiredState::kTerminated;
         s.status.ended_by = api::EndedBy::kMaxLifetime;
         s.status.terminated_time = kNow;
       },
       Verdict::kReached},
  };
  for (const auto& each : cases) {
    api::Sandbox sandbox = ready_sandbox();
    each.change(sandbox);
    EXPECT_EQ(progress_to(each.wished, sandbox).verdict, each.verdict) << each.name;
  }
  EXPECT_EQ(progress_to(DesiredState::kRunning, std::nullopt).verdict, Verdict::kNotYet);
}

TEST(Progress, TakesAnotherObjectOfTheSameNameForAbsence) {
  api::Sandbox sandbox = ready_sandbox();
  const std::string no = "no such request";
  using Verdict = Progress::Verdict;
  EXPECT_EQ(progress_to_absence("uid-1", sandbox, {}).verdict, Verdict::kNotYet);
  EXPECT_EQ(progress_to_absence("uid-0", sandbox, {}).verdict, Verdict::kReached);
  EXPECT_EQ(progress_to_absence("uid-1", std::nullopt, {}).verdict, Verdict::kReached);
  EXPECT_EQ(progress_to_absence("uid-1", sandbox, no), (Progress{Verdict::kRefused, no, true}));
  EXPECT_EQ(progress_to_absence("uid-1", std::nullopt, no).verdict, Verdict::kReached);
}

}  // namespace
}  // namespace cli
