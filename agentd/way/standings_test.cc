#include "agentd/way/standings.h"

#include <gtest/gtest.h>

#include <ostream>
#include <thread>

#include "libs/aio/loop.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/api/reasons.h"

namespace agentd {
namespace {

struct Case {
  const char* name;
  void (*change)(api::Sandbox&);
  Standing standing;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

api::Sandbox running() {
  api::Sandbox sandbox;
  sandbox.metadata.key = {"team-a", "box"};
  sandbox.status.sandbox_id = "i1";
  sandbox.status.run = 1;
  api::set_condition(sandbox.status.conditions,
                     {.type = std::string(api::condition::kReady), .status = "True"});
  return sandbox;
}

const Case kCases[] = {
    {"runs", [](api::Sandbox&) {}, Standing::kRunning},
    {"is_new", [](api::Sandbox& s) { s.status = {}; }, Standing::kUnknown},
    {"is_not_ready", [](api::Sandbox& s) { s.status.conditions.clear(); }, Standing::kUnknown},
    {"has_never_run", [](api::Sandbox& s) { s.status.run = 0; }, Standing::kUnknown},
    {"is_to_pause", [](api::Sandbox& s) { s.spec.desired_state = api::DesiredState::kPaused; },
     Standing::kPaused},
    {"is_being_paused", [](api::Sandbox& s) { s.status.paused_by = api::PausedBy::kUser; },
     Standing::kPaused},
    {"is_paused",
     [](api::Sandbox& s) {
       api::set_condition(s.status.conditions,
                          {.type = std::string(api::condition::kPaused), .status = "True"});
     },
     Standing::kPaused},
    {"is_to_end", [](api::Sandbox& s) { s.spec.desired_state = api::DesiredState::kTerminated; },
     Standing::kEnded},
    {"has_ended", [](api::Sandbox& s) { s.status.ended_by = api::EndedBy::kMaxLifetime; },
     Standing::kEnded},
    {"is_being_deleted", [](api::Sandbox& s) { s.metadata.deleted = base::WallTime{}; },
     Standing::kEnded},
    {"is_being_deleted_while_paused",
     [](api::Sandbox& s) {
       s.metadata.deleted = base::WallTime{};
       s.status.paused_by = api::PausedBy::kUser;
     },
     Standing::kEnded},
};

class OfSandboxes : public testing::TestWithParam<Case> {};

TEST_P(OfSandboxes, EachStandsAsItsResourceSays) {
  api::Sandbox sandbox = running();
  GetParam().change(sandbox);
  EXPECT_EQ(standing_of(sandbox), GetParam().standing);
}

INSTANTIATE_TEST_SUITE_P(, OfSandboxes, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

struct Site {
  Standing of(const std::string& name) const { return standings.standing({"s", name}); }
  aio::Loop loop;
  Standings standings{loop.executor(), 2};
};

TEST(Standings, AreUnknownWhileNobodyTells) {
  Site site;
  site.standings.take({{{"s", "a"}, Standing::kRunning}});
  EXPECT_EQ(site.of("a"), Standing::kUnknown);
  site.standings.set_heard(true);
  EXPECT_EQ(site.of("a"), Standing::kRunning);
  EXPECT_EQ(site.of("b"), Standing::kUnknown) << "it may come";
  site.standings.set_heard(false);
  EXPECT_EQ(site.of("a"), Standing::kUnknown);
}

TEST(Standings, RememberSomeOfThoseThatAreNoMore) {
  Site site;
  site.standings.set_heard(true);
  for (const char* name : {"a", "b", "c"}) {
    site.standings.take({{{"s", name}, Standing::kRunning}});
    site.standings.take({{{"s", name}, std::nullopt}});
  }
  EXPECT_EQ(site.of("a"), Standing::kUnknown) << "there was room for two";
  EXPECT_EQ(site.of("b"), Standing::kEnded);
  EXPECT_EQ(site.of("c"), Standing::kEnded);
  site.standings.take({{{"s", "b"}, Standing::kRunning}, {{"s", "never"}, std::nullopt}});
  EXPECT_EQ(site.of("b"), Standing::kRunning) << "another of that name";
  EXPECT_EQ(site.of("never"), Standing::kUnknown);
}

aio::Task<bool> follow(Standings& standings, Standing until) {
  while (standings.standing({"s", "a"}) != until) co_await standings.moved().wait();
  co_return true;
}

aio::Task<> news_from_a_thread(Site& site) {
  const auto post = std::make_shared<StandingPost>(site.loop.executor(), site.standings);
  std::jthread teller([&] {
    post->set_heard(true);
    for (int i = 0; i < 1'000; ++i) post->tell({"s", "a"}, Standing::kPaused);
    post->tell({"s", "a"}, Standing::kRunning);
  });
  EXPECT_TRUE(
      co_await aio::within(follow(site.standings, Standing::kRunning), aio::testing::kPatience));
}
TEST(StandingPost, WakesWhoWaitsForNews) { aio::testing::tell(news_from_a_thread); }

aio::Task<> a_post_without_standings(Site& site) {
  auto standings = std::make_unique<Standings>(site.loop.executor());
  const auto post = std::make_shared<StandingPost>(site.loop.executor(), *standings);
  post->tell({"s", "a"}, Standing::kRunning);
  post->close();
  standings.reset();
  co_await aio::sleep_for(base::Milliseconds(1));  // The loop comes to it.
}
TEST(StandingPost, OutlivesThoseItTells) { aio::testing::tell(a_post_without_standings); }

}  // namespace
}  // namespace agentd
