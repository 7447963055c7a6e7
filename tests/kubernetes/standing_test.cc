#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "agentd/way/cluster_watch.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/crypto.h"
#include "libs/net/curl_transport.h"

// What agentd hears of Sandboxes from a real API server, which on_a_server.py starts, with no more
// rights than it needs.
namespace agentd {
namespace {

using aio::testing::tell;
using base::Json;

constexpr base::Milliseconds kPatience{60'000};
constexpr char kRbac[] = "/apis/rbac.authorization.k8s.io/v1/";

kube::ConnectionSettings over_curl() {
  return {.transport = [](const net::ConnectionOptions& how) { return net::curl_transport(how); }};
}

kube::Config config() {
  auto found = kube::find_config({}, kube::surroundings_of_process());
  EXPECT_TRUE(found) << found.error().message;
  return *std::move(found);
}

// A namespace with an account in it that may get, list and watch Sandboxes.
struct Site {
  Site() {
    post("/api/v1/namespaces", {{"metadata", {{"name", space}}}});
    post("/api/v1/namespaces/" + space + "/serviceaccounts", {{"metadata", {{"name", "agentd"}}}});
    post(kRbac + ("namespaces/" + space + "/roles"), {{"metadata", {{"name", "agentd"}}},
                                                      {"rules",
                                                       {{{"apiGroups", {"sandfleet.dev"}},
                                                         {"resources", {"sandboxes"}},
                                                         {"verbs", {"get", "list", "watch"}}}}}});
    post(kRbac + ("namespaces/" + space + "/rolebindings"),
         {{"metadata", {{"name", "agentd"}}},
          {"roleRef",
           {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "agentd"}}},
          {"subjects", {{{"kind", "ServiceAccount"}, {"name", "agentd"}, {"namespace", space}}}}});
    const Json token = post("/api/v1/namespaces/" + space + "/serviceaccounts/agentd/token",
                            {{"apiVersion", "authentication.k8s.io/v1"},
                             {"kind", "TokenRequest"},
                             {"spec", Json::object()}});
    kube::Config own = config();
    own.user = {.token = token["status"]["token"].get<std::string>()};
    connection.emplace(std::move(own), clock, over_curl());
    client.emplace(*connection);
  }

  Json post(const std::string& path, const Json& body) {
    auto answer = people.post(path, body);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : Json();
  }
  void declare(const char* desired) {
    const Json sandbox = {{"apiVersion", "sandfleet.dev/v1alpha1"},
                          {"kind", "Sandbox"},
                          {"metadata", {{"namespace", space}, {"name", "box"}}},
                          {"spec", {{"template", {{"id", "base"}}}, {"desiredState", desired}}}};
    const auto applied = people.apply(kube::kSandboxes, sandbox, true);
    EXPECT_TRUE(applied) << applied.error().message;
  }

  const std::string space = "t-" + base::random_hex(6);
  base::SystemClock clock;
  kube::Connection peoples{config(), clock, over_curl()};
  kube::Client people{peoples, {.field_manager = "people"}};
  std::optional<kube::Connection> connection;
  std::optional<kube::Client> client;
  aio::Loop loop;
  Standings standings{loop.executor()};
};

void have_done(const char* deed) {
  std::cout << "@" << deed << '\n' << std::flush;
  std::string done;
  std::getline(std::cin, done);
}

aio::Task<bool> until(Site& site, Standing standing) {
  while (site.standings.standing({site.space, "box"}) != standing)
    co_await site.standings.moved().wait();
  co_return true;
}
aio::Task<bool> becomes(Site& site, Standing standing) {
  co_return (co_await aio::within(until(site, standing), kPatience)).value_or(false);
}

aio::Task<> a_life(Site& site) {
  const ClusterWatch watch(site.loop.executor(), site.standings, *site.client, site.clock,
                           {.spaces = {site.space}});
  site.declare("Paused");
  EXPECT_TRUE(co_await becomes(site, Standing::kPaused));
  have_done("restart-api-server");
  site.declare("Terminated");
  EXPECT_TRUE(co_await becomes(site, Standing::kEnded)) << "after a restart of the server";
}
TEST(ClusterWatchOnAServer, FollowsTheLifeOfASandbox) { tell(a_life); }

aio::Task<> more_than_it_may(Site& site) {
  site.declare("Paused");
  const ClusterWatch watch(site.loop.executor(), site.standings, *site.client, site.clock,
                           {.look = base::Milliseconds(10)});
  EXPECT_FALSE(co_await aio::within(until(site, Standing::kPaused), base::Milliseconds(500)));
}
TEST(ClusterWatchOnAServer, LivesOnWithoutTheRightTo) { tell(more_than_it_may); }

}  // namespace
}  // namespace agentd
