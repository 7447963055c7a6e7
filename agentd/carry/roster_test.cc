#include "agentd/carry/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace agentd {
namespace {

using wire::CloseReason;

struct Link final : Roster::Member {
  explicit Link(Roster& roster) : roster(roster) { roster.join(*this); }
  ~Link() override { roster.remove(*this); }
  void leave(wire::Close close) override { left = close.reason; }

  Roster& roster;
  std::optional<CloseReason> left;
};

const wire::SandboxName kBox{"team-a", "box"}, kOther{"team-a", "other"};
const std::string kSession(32, 'a');

TEST(Roster, LetsTheOldestThatHasSaidNothingMakeRoom) {
  Roster roster({.greeting_max = 2});
  Link first(roster), second(roster);
  EXPECT_TRUE(roster.enter(first, kBox));
  Link third(roster);
  EXPECT_FALSE(second.left);
  Link fourth(roster);
  EXPECT_EQ(second.left, CloseReason::kBusy);
  EXPECT_FALSE(first.left) << "it has said hello";
  EXPECT_EQ(roster.greeting(), 2u);
}

TEST(Roster, LetsInSoManyInAllAndToOneSandbox) {
  Roster roster({.links_max = 3, .links_each_max = 2});
  auto first = std::make_unique<Link>(roster);
  Link second(roster), third(roster), fourth(roster), fifth(roster);
  EXPECT_TRUE(roster.enter(*first, kBox));
  EXPECT_TRUE(roster.enter(second, kBox));
  EXPECT_FALSE(roster.enter(third, kBox));
  EXPECT_TRUE(roster.enter(fourth, kOther));
  EXPECT_FALSE(roster.enter(fifth, kOther)) << "no more in all";
  first.reset();
  EXPECT_EQ(roster.links(), 2u);
  Link sixth(roster);
  EXPECT_TRUE(roster.enter(sixth, kBox)) << "one has left";
}

TEST(Roster, KeepsNoPlaceForThoseWhoseHarnessHasGone) {
  Roster roster({.links_max = 2, .links_each_max = 1, .parting_max = 2});
  auto first = std::make_unique<Link>(roster);
  Link second(roster), third(roster), fourth(roster), stranger(roster);
  EXPECT_TRUE(roster.enter(*first, kBox));
  roster.take(*first, kSession);
  EXPECT_FALSE(roster.enter(second, kBox));
  roster.part(*first);
  roster.part(*first);
  EXPECT_EQ(roster.links(), 0u);
  EXPECT_TRUE(roster.enter(second, kBox));
  EXPECT_TRUE(roster.enter(stranger, kOther));
  roster.part(second);
  EXPECT_FALSE(first->left) << "there is room for two";
  EXPECT_TRUE(roster.enter(third, kBox));
  roster.part(third);
  EXPECT_EQ(first->left, CloseReason::kBusy);
  EXPECT_FALSE(second.left);
  EXPECT_TRUE(roster.enter(fourth, kBox));
  EXPECT_EQ(roster.links(), 2u);
  first.reset();
  EXPECT_EQ(roster.links(), 2u) << "it had given its place up";
  roster.part(fourth);
  EXPECT_EQ(second.left, CloseReason::kBusy);
}

// covers: 4.7
TEST(Roster, GivesASessionToTheNewest) {
  Roster roster({});
  Link older(roster), newer(roster);
  roster.enter(older, kBox);
  roster.enter(newer, kBox);
  roster.take(older, kSession);
  roster.take(older, kSession);
  EXPECT_FALSE(older.left) << "it dialled its executor anew";
  roster.take(newer, kSession);
  EXPECT_EQ(older.left, CloseReason::kReplaced);
  EXPECT_FALSE(newer.left);
}

TEST(Roster, TakesNoSessionFromAnotherSandbox) {
  Roster roster({});
  Link owner(roster), stranger(roster);
  roster.enter(owner, kBox);
  roster.enter(stranger, kOther);
  roster.take(owner, kSession);
  roster.take(stranger, kSession);
  EXPECT_FALSE(owner.left);
  EXPECT_FALSE(stranger.left);
}

TEST(Roster, KnowsWhoHasASessionWhenOthersHaveLeft) {
  Roster roster({});
  auto older = std::make_unique<Link>(roster);
  Link newer(roster), newest(roster);
  for (Link* link : {older.get(), &newer, &newest}) roster.enter(*link, kBox);
  roster.take(*older, kSession);
  roster.take(newer, kSession);
  older.reset();
  roster.take(newest, kSession);
  EXPECT_EQ(newer.left, CloseReason::kReplaced);
  roster.take(newest, std::string(32, 'b'));
  Link another(roster);
  roster.enter(another, kBox);
  roster.take(another, kSession);
  EXPECT_FALSE(newest.left) << "it has given that session up";
}

TEST(RosterLimits, FitTheDescriptorsThatThereAre) {
  struct Case {
    std::size_t descriptors, greeting, parting, links;
  };
  for (const auto& [descriptors, greeting, parting, links] : {Case{1u << 20, 256, 64, 1'024},
                                                              {2'000, 210, 64, 534},
                                                              {1'024, 88, 44, 198},
                                                              {256, 16, 8, 36},
                                                              {16, 1, 1, 1},
                                                              {3, 1, 1, 1},
                                                              {2, 1, 1, 1},
                                                              {1, 1, 1, 1},
                                                              {0, 1, 1, 1}}) {
    const RosterLimits limits = fitting({}, descriptors);
    EXPECT_EQ(limits.greeting_max, greeting) << descriptors;
    EXPECT_EQ(limits.parting_max, parting) << descriptors;
    EXPECT_EQ(limits.links_max, links) << descriptors;
    EXPECT_EQ(limits.links_each_max, 64u);
  }
}

TEST(Roster, ClosesForAllAndForWhoComesLater) {
  Roster roster({});
  Link greeting(roster), entered(roster);
  roster.enter(entered, kBox);
  roster.close([] { return wire::Close{CloseReason::kShutdown}; });
  EXPECT_EQ(greeting.left, CloseReason::kShutdown);
  EXPECT_EQ(entered.left, CloseReason::kShutdown);
  Link later(roster);
  EXPECT_FALSE(roster.enter(later, kBox));
}

}  // namespace
}  // namespace agentd
