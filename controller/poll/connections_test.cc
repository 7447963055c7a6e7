#include "controller/poll/connections.h"

#include <gtest/gtest.h>

namespace controller {
namespace {

e2b::SandboxInfo box(const std::string& id, e2b::State state = e2b::State::kRunning) {
  return {.id = id, .state = state};
}

TEST(Poll, NamesTheSandboxesThatAreNotAsTheyWere) {
  const Polled before{.boxes = {{"same", {box("a")}},
                                {"paused", {box("b")}},
                                {"gone", {box("c")}},
                                {"doubled", {box("d")}}}};
  const Polled after{.boxes = {{"same", {box("a")}},
                               {"paused", {box("b", e2b::State::kPaused)}},
                               {"doubled", {box("d"), box("e")}},
                               {"new", {box("f")}}}};
  EXPECT_EQ(changed_uids(before, after),
            (std::set<std::string>{"paused", "gone", "doubled", "new"}));
}

TEST(Poll, NoticesAnotherRunOfTheSameSandbox) {
  Polled before{.boxes = {{"u", {box("a")}}}}, after = before;
  after.boxes["u"][0].started_at = base::WallTime(base::Milliseconds(5));
  EXPECT_EQ(changed_uids(before, after), std::set<std::string>{"u"});
}

}  // namespace
}  // namespace controller
