#include "agentd/way/cluster_watch.h"

#include <gtest/gtest.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/kube/testing/fake_server.h"

namespace agentd {
namespace {

using namespace std::chrono_literals;
using aio::testing::kPatience;
using aio::testing::tell;
using base::Json;

Json sandbox(const char* space, const char* desired, const char* version) {
  return {{"apiVersion", "sandfleet.dev/v1alpha1"},
          {"kind", "Sandbox"},
          {"metadata",
           {{"namespace", space}, {"name", "box"}, {"uid", "u1"}, {"resourceVersion", version}}},
          {"spec", {{"template", {{"id", "base"}}}, {"desiredState", desired}}}};
}

// An API server with a Sandbox in each namespace, one of which comes to its end when it is watched.
// That of "closed" refuses us; none answers while it is away.
struct Site {
  net::Answer answer(const net::Request& request) {
    if (away) return net::refused_connection();
    const std::string& url = request.url;
    const char* space = url.find("/namespaces/b/") == std::string::npos ? "a" : "b";
    if (url.find("/namespaces/closed/") != std::string::npos)
      return net::answer(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
    if (url.find("watch=") == std::string::npos)
      return net::answer(200, base::to_text(Json{{"metadata", {{"resourceVersion", "10"}}},
                                                 {"items", {sandbox(space, "Paused", "5")}}}));
    net::Answer watched{.end = net::Answer::End::kSilence};
    if (*space == 'b' && url.find("resourceVersion=10") != std::string::npos)
      watched.pieces.push_back(
          base::to_text(Json{{"type", "MODIFIED"}, {"object", sandbox("b", "Terminated", "11")}}) +
          "\n");
    return watched;
  }
  std::unique_ptr<ClusterWatch> watch(std::vector<std::string> spaces) {
    return std::make_unique<ClusterWatch>(
        loop.executor(), standings, server.client(), clock,
        ClusterWatch::Settings{
            .spaces = std::move(spaces),
            .look = 5ms,
            .patience = 50ms,
            .reflector = {.course = {.streaming = false, .backoff_min = 1ms, .backoff_max = 5ms},
                          .silence_max = 20ms}});
  }

  std::atomic<bool> away = false;
  kube::FakeServer server{[this](const net::Request& request) { return answer(request); }};
  base::SystemClock clock;
  aio::Loop loop;
  Standings standings{loop.executor()};
};

aio::Task<bool> until(Standings& standings, wire::SandboxName name, Standing standing) {
  while (standings.standing(name) != standing) co_await standings.moved().wait();
  co_return true;
}
aio::Task<bool> becomes(Site& site, const char* space, Standing standing) {
  co_return (co_await aio::within(until(site.standings, {space, "box"}, standing), kPatience))
      .value_or(false);
}

aio::Task<> namespaces(Site& site) {
  const auto watch = site.watch({"a", "b"});
  EXPECT_TRUE(co_await becomes(site, "a", Standing::kPaused));
  EXPECT_TRUE(co_await becomes(site, "b", Standing::kEnded));
}
TEST(ClusterWatch, TellsHowSandboxesOfNamespacesStand) { tell(namespaces); }

aio::Task<> the_whole(Site& site) {
  const auto watch = site.watch({});
  EXPECT_TRUE(co_await becomes(site, "a", Standing::kPaused));
  EXPECT_EQ(site.server.transport().count("GET", "/namespaces/"), 0);
}
TEST(ClusterWatch, WatchesAWholeCluster) { tell(the_whole); }

aio::Task<> a_cut(Site& site) {
  const auto watch = site.watch({"a"});
  EXPECT_TRUE(co_await becomes(site, "a", Standing::kPaused));
  site.away = true;
  EXPECT_TRUE(co_await becomes(site, "a", Standing::kUnknown));
}
TEST(ClusterWatch, KnowsNothingWhenTheServerIsAwayForLong) { tell(a_cut); }

aio::Task<> a_refusal(Site& site) {
  const auto watch = site.watch({"a", "closed"});
  const auto asked = [&] { return site.server.transport().count("GET", "/namespaces/closed/"); };
  while (asked() < 3) co_await aio::sleep_for(1ms);
  EXPECT_EQ(site.standings.standing({"a", "box"}), Standing::kUnknown);
}
TEST(ClusterWatch, LivesOnWithoutTheRightTo) { tell(a_refusal); }

}  // namespace
}  // namespace agentd
