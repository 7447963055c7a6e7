#include "controller/attach/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

using testing::HasSubstr;

const api::Key kKey{"team-a", "box"};

api::Sandbox ready() {
  api::Sandbox sandbox;
  sandbox.metadata.key = kKey;
  sandbox.status.sandbox_id = "i1";
  sandbox.status.epoch = sandbox.status.run = 1;
  api::set_condition(sandbox.status.conditions,
                     {std::string(api::condition::kReady), "True", "Ready", ""});
  return sandbox;
}

api::Sandbox with(void (*change)(api::Sandbox&)) {
  api::Sandbox sandbox = ready();
  change(sandbox);
  return sandbox;
}

// Paused for idleness; nobody has asked for it since.
void idle(api::Sandbox& sandbox) {
  sandbox.spec.lifecycle.idle = base::Seconds(60);
  sandbox.status.paused_by = api::PausedBy::kIdle;
}
void asked_for(api::Sandbox& sandbox) {
  idle(sandbox);
  sandbox.spec.lifecycle.wake_on_attach = true;
  sandbox.metadata.annotations[std::string(api::kWakeAnnotation)] = "now";
}

void unready(api::Sandbox& sandbox) {
  api::set_condition(sandbox.status.conditions,
                     {std::string(api::condition::kReady), "False", "Resuming", "almost"});
}

TEST(Admission, IsForASandboxThatIsReadyAndIsToStaySo) {
  const struct {
    const char* name;
    api::Sandbox sandbox;
    std::optional<NoEntry> reason;
  } cases[] = {
      {"ready", ready(), {}},
      {"deleting", with([](auto& s) { s.metadata.deleted = base::WallTime{}; }), NoEntry::kEnded},
      {"to be ended", with([](auto& s) { s.spec.desired_state = api::DesiredState::kTerminated; }),
       NoEntry::kEnded},
      {"ended", with([](auto& s) { s.status.ended_by = api::EndedBy::kMaxLifetime; }),
       NoEntry::kEnded},
      {"to be paused", with([](auto& s) { s.spec.desired_state = api::DesiredState::kPaused; }),
       NoEntry::kPaused},
      {"being resumed", with([](auto& s) { s.status.paused_by = api::PausedBy::kUser; }),
       NoEntry::kNotReady},
      {"idle", with(idle), NoEntry::kPaused},
      {"idle, and asked for", with(asked_for), NoEntry::kNotReady},
      {"idle, and it may no longer be",
       with([](auto& s) { s.status.paused_by = api::PausedBy::kIdle; }), NoEntry::kNotReady},
      {"not ready", with(unready), NoEntry::kNotReady},
      {"no word of ready", with([](auto& s) { s.status.conditions.clear(); }), NoEntry::kNotReady},
      {"not bound", with([](auto& s) { s.status.sandbox_id.clear(); }), NoEntry::kNotReady},
      {"no run", with([](auto& s) { s.status.run = 0; }), NoEntry::kNotReady},
  };
  for (const auto& each : cases) {
    const auto verdict = judge(&each.sandbox, kKey);
    const auto* refused = std::get_if<Refused>(&verdict);
    ASSERT_EQ(refused != nullptr, each.reason.has_value()) << each.name;
    if (!refused) continue;
    EXPECT_EQ(refused->reason, *each.reason) << each.name;
    EXPECT_THAT(refused->message, HasSubstr("Sandbox team-a/box")) << each.name;
    EXPECT_EQ(refused->retry_after.has_value(), each.reason == NoEntry::kNotReady) << each.name;
  }
}

TEST(Admission, WakesWhatIdlesWhereThatIsWanted) {
  const auto wakes = [](auto change) {
    api::Sandbox sandbox = with(idle);
    sandbox.spec.lifecycle.wake_on_attach = true;
    change(sandbox);
    return std::holds_alternative<Wakes>(judge(&sandbox, kKey));
  };
  EXPECT_TRUE(wakes([](auto&) {}));
  EXPECT_FALSE(wakes([](auto& s) { s.spec.lifecycle.wake_on_attach = false; }));
  EXPECT_FALSE(wakes([](auto& s) { s.metadata.deleted = base::WallTime{}; }));
  EXPECT_FALSE(wakes([](auto& s) { s.status.ended_by = api::EndedBy::kMaxLifetime; }));
  EXPECT_FALSE(wakes([](auto& s) { s.spec.desired_state = api::DesiredState::kPaused; }));
  EXPECT_FALSE(wakes([](auto& s) { s.status.paused_by = api::PausedBy::kUser; }));
  EXPECT_FALSE(wakes(asked_for)) << "once is enough";
  // A wish of before it was found idle is no wish to wake it.
  EXPECT_TRUE(wakes([](auto& s) {
    asked_for(s);
    s.status.wake_seen = "now";
  }));
  // Nor is it one that the annotation of before is gone.
  EXPECT_TRUE(wakes([](auto& s) { s.status.wake_seen = "now"; }));
}

TEST(Admission, SaysWhyItIsNotReady) {
  const api::Sandbox sandbox = with(unready);
  const auto verdict = judge(&sandbox, kKey);
  EXPECT_EQ(std::get<Refused>(verdict).message,
            "Sandbox team-a/box is not ready: Resuming, almost");
}

TEST(Admission, KnowsWhatIsNotThere) {
  const auto verdict = judge(nullptr, kKey);
  EXPECT_EQ(std::get<Refused>(verdict),
            (Refused{NoEntry::kNotFound, "there is no Sandbox team-a/box"}));
}

TEST(NoEntry, HasAWordAndAStatusEach) {
  const struct {
    NoEntry reason;
    std::string_view word;
    int status;
  } cases[] = {{NoEntry::kInvalid, "Invalid", 400},
               {NoEntry::kDenied, "Denied", 403},
               {NoEntry::kNotFound, "NotFound", 404},
               {NoEntry::kPaused, "Paused", 409},
               {NoEntry::kEnded, "Ended", 410},
               {NoEntry::kNotReady, "NotReady", 503},
               {NoEntry::kRateLimited, "RateLimited", 429},
               {NoEntry::kUnavailable, "Unavailable", 503}};
  for (const auto& each : cases) {
    EXPECT_EQ(to_word(each.reason), each.word);
    EXPECT_EQ(http_status_of(each.reason), each.status) << each.word;
  }
}

}  // namespace
}  // namespace controller
