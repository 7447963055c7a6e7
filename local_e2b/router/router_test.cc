#include "local_e2b/router/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/testing/temporary_folder.h"
#include "local_e2b/control/testing/fake_box_host.h"

namespace local_e2b {
namespace {

using aio::testing::dial;
using aio::testing::hear_all;
using aio::testing::hear_until;
using aio::testing::say;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The router on a loopback port; every port of every fake box is one small server that says hello
// and, at /stream, never ends.
struct World {
  explicit World(std::size_t idle_max = Connections::kIdleMax)
      : records(*Records::open(folder.path())),
        host(loop.executor()),
        connections(2, idle_max),
        fleet(loop.executor(), host, records, connections, clock, {}),
        faults(1),
        router(fleet, host, connections, faults, requests, clock),
        inside(loop.executor(), serve_inside),
        server(loop.executor(), [this](auto exchange) { return router.handle(exchange); }) {
    host.upstream_port = *inside.listen("127.0.0.1", 0);
    port = *server.listen("127.0.0.1", 0);
  }
  ~World() {
    server.stop();
    inside.stop();
  }
  static aio::Task<> serve_inside(std::shared_ptr<aio::HttpExchange> exchange) {
    if (exchange->head().path() != "/stream") {
      (void)co_await exchange->reply({.status = 200, .body = "hello"});
      co_return;
    }
    (void)co_await exchange->begin(200, {});
    (void)co_await exchange->write("first");
    co_await exchange->wait_for_disconnect();
  }
  void run(aio::Task<> story) { aio::testing::run(loop, std::move(story)); }

  base::TemporaryFolder folder;
  base::SystemClock clock;
  aio::Loop loop;
  Records records;
  FakeBoxHost host;
  Connections connections;
  Fleet fleet;
  Faults faults;
  RequestLog requests;
  Router router;
  aio::HttpServer inside, server;
  int port = 0;
};

aio::Task<Sandbox> make(World& world,
                        CreateRequest request = {.template_id = "base", .timeout_seconds = 60}) {
  co_return *co_await world.fleet.create("red", std::move(request));
}

std::string get_and_stay(const std::string& id, const std::string& path,
                         const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nE2b-Sandbox-Id: " + id +
         "\r\nE2b-Sandbox-Port: 80\r\n" + more + "\r\n";
}
std::string get(const std::string& id, const std::string& path, const std::string& more = "") {
  return get_and_stay(id, path, "Connection: close\r\n" + more);
}
aio::Task<std::string> fetch(World& world, std::string request) {
  auto peer = co_await dial(world.port);
  co_await say(peer, std::move(request));
  co_return co_await hear_all(peer);
}

aio::Task<> routes(World& world) {
  const auto sandbox = co_await make(world);
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")),
              AllOf(HasSubstr("200"), HasSubstr("hello")));
  EXPECT_THAT(co_await fetch(world, "GET / HTTP/1.1\r\nHost: 80-" + sandbox.id +
                                        ".localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("hello"));
  EXPECT_THAT(co_await fetch(world, get("iunknown", "/")),
              AllOf(HasSubstr(" 502 "), HasSubstr("\"sandboxId\":\"iunknown\"")));
  EXPECT_THAT(co_await fetch(world, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              HasSubstr(" 400 "));
  EXPECT_THAT(co_await fetch(world, "POST //init HTTP/1.1\r\nHost: 49983-" + sandbox.id +
                                        ".x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
              HasSubstr(" 404 "));
  world.inside.stop();
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")),
              AllOf(HasSubstr(" 502 "), HasSubstr("\"port\":80")));
  EXPECT_EQ(world.connections.count(sandbox.id), 0u);
}
TEST(Router, CarriesToTheRightSandbox) {
  World world;
  world.run(routes(world));
}

aio::Task<> cuts(World& world) {
  const auto sandbox = co_await make(world);
  auto peer = co_await dial(world.port);
  co_await say(peer, get(sandbox.id, "/stream"));
  EXPECT_THAT(co_await hear_until(peer, "first"), HasSubstr("200"));
  EXPECT_TRUE(co_await world.fleet.pause("red", sandbox.id));
  EXPECT_THAT(co_await hear_all(peer), HasSubstr("<broken>"));
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")), HasSubstr(" 502 "));
}
TEST(Router, CutsEveryConnectionOfASandboxThatIsPaused) {
  World world;
  world.run(cuts(world));
}

// By the sandbox's own host, as clients of a wildcard domain do.
std::string get_by_host(const std::string& id, const std::string& more = "") {
  return "GET / HTTP/1.1\r\nHost: 80-" + id + ".example\r\n" + more + "\r\n";
}

aio::Task<> cuts_idle(World& world) {
  const auto paused = co_await make(world);
  const auto other = co_await make(world);
  auto own = co_await dial(world.port);
  co_await say(own, get_by_host(paused.id));
  EXPECT_THAT(co_await hear_until(own, "hello"), HasSubstr("200"));
  auto shared = co_await dial(world.port);
  co_await say(shared, get_and_stay(paused.id, "/"));
  EXPECT_THAT(co_await hear_until(shared, "hello"), HasSubstr("200"));
  EXPECT_TRUE(co_await world.fleet.pause("red", paused.id));
  EXPECT_EQ(co_await hear_all(own), "<broken>");
  co_await say(shared, get(other.id, "/"));
  EXPECT_THAT(co_await hear_all(shared), HasSubstr("hello"));
}
TEST(Router, CutsAnIdleConnectionToTheHostOfASandboxThatIsPaused) {
  World world;
  world.run(cuts_idle(world));
}

aio::Task<> remembers_few(World& world) {
  const auto sandbox = co_await make(world);
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(co_await fetch(world, get_by_host(sandbox.id, "Connection: close\r\n")),
                HasSubstr("hello"));
  EXPECT_LE(world.connections.idle(), 2u);
  auto peer = co_await dial(world.port);
  co_await say(peer, get_by_host(sandbox.id));
  EXPECT_THAT(co_await hear_until(peer, "hello"), HasSubstr("200"));
  EXPECT_TRUE(co_await world.fleet.pause("red", sandbox.id));
  EXPECT_EQ(co_await hear_all(peer), "<broken>");
}
TEST(Router, ForgetsConnectionsThatAreClosed) {
  World world(2);
  world.run(remembers_few(world));
}

aio::Task<> pause_only(World& world, std::string id) {
  EXPECT_TRUE(co_await world.fleet.pause("red", std::move(id)));
}

aio::Task<> holds_back(World& world) {
  const auto sandbox = co_await make(world);
  world.host.hold("freeze");
  aio::TaskGroup group(world.loop.executor());
  group.spawn(pause_only(world, sandbox.id));
  while (world.host.waiting.empty()) co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")), HasSubstr(" 409 "));
  world.host.release("freeze");
  co_await group.wait();
}
TEST(Router, AsksToRetryWhileASandboxIsBeingPaused) {
  World world;
  world.run(holds_back(world));
}

aio::Task<> guards(World& world) {
  CreateRequest request{
      .template_id = "base", .timeout_seconds = 60, .allow_public_traffic = false};
  const auto sandbox = co_await make(world, std::move(request));
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")), HasSubstr(" 403 "));
  EXPECT_THAT(
      co_await fetch(world, get(sandbox.id, "/",
                                "E2b-Traffic-Access-Token: " + sandbox.traffic_token + "\r\n")),
      HasSubstr("hello"));
}
TEST(Router, AsksForTheTokenOfPrivateTraffic) {
  World world;
  world.run(guards(world));
}

aio::Task<> wakes(World& world) {
  const auto asleep = co_await make(world);
  CreateRequest request{
      .template_id = "base", .timeout_seconds = 60, .auto_pause = true, .auto_resume = true};
  const auto light = co_await make(world, std::move(request));
  EXPECT_TRUE(co_await world.fleet.pause("red", asleep.id));
  EXPECT_TRUE(co_await world.fleet.pause("red", light.id));
  EXPECT_THAT(co_await fetch(world, get(asleep.id, "/")), HasSubstr(" 502 "));
  EXPECT_THAT(co_await fetch(world, "GET / HTTP/1.1\r\nHost: 49983-" + light.id +
                                        ".x\r\nConnection: close\r\n\r\n"),
              HasSubstr(" 403 "));
  EXPECT_EQ(world.fleet.find(light.id)->phase, Phase::kPaused) << "a stranger does not wake it";
  EXPECT_THAT(co_await fetch(world, get(light.id, "/")), HasSubstr("hello"));
  EXPECT_EQ(world.fleet.find(light.id)->phase, Phase::kRunning);
}
TEST(Router, WakesASandboxThatAskedForIt) {
  World world;
  world.run(wakes(world));
}

aio::Task<> bounds(World& world) {
  const auto sandbox = co_await make(world);
  std::vector<std::shared_ptr<aio::Stream>> peers;
  for (int i = 0; i < 2; ++i) {
    peers.push_back(co_await dial(world.port));
    co_await say(peers.back(), get(sandbox.id, "/stream"));
    EXPECT_THAT(co_await hear_until(peers.back(), "first"), HasSubstr("200"));
  }
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")), HasSubstr(" 429 "));
}
TEST(Router, BoundsTheConnectionsToOneSandbox) {
  World world;
  world.run(bounds(world));
}

aio::Task<> loses(World& world) {
  const auto sandbox = co_await make(world);
  EXPECT_TRUE(world.faults.set({*parse_fault("data:lost-reply:count=1")}));
  EXPECT_EQ(co_await fetch(world, get(sandbox.id, "/")), "<broken>");
  EXPECT_THAT(co_await fetch(world, get(sandbox.id, "/")), HasSubstr("hello"));
}
TEST(Router, LosesAReplyWhenAskedTo) {
  World world;
  world.run(loses(world));
}

aio::Task<> remembers(World& world) {
  const auto sandbox = co_await make(world);
  co_await fetch(world, get("iunknown", "/nobodys"));
  co_await fetch(world, get(sandbox.id, "/" + std::string(2'000, 'x') + "?secret=1"));
  const auto deadline = world.clock.now() + base::Milliseconds(30'000);
  while (world.requests.all().empty() && world.clock.now() < deadline)
    co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_EQ(world.requests.all().size(), 1u);
  if (world.requests.all().empty()) co_return;
  const Remembered& request = world.requests.all().front();
  EXPECT_EQ(request.team, "red");
  EXPECT_EQ(request.sandbox_id, sandbox.id);
  EXPECT_EQ(request.method, "GET");
  EXPECT_TRUE(request.path.starts_with("/xx"));
  EXPECT_LE(request.path.size(), 1024u + 8);
}
TEST(Router, RemembersWhatWasAskedOfASandbox) {
  World world;
  world.run(remembers(world));
}

TEST(RequestLog, KeepsTheNewest) {
  RequestLog log;
  for (std::size_t number = 0; number <= kRememberedMax; ++number)
    log.add({.path = std::to_string(number)});
  EXPECT_EQ(log.all().size(), kRememberedMax);
  EXPECT_EQ(log.all().front().path, "1");
}

}  // namespace
}  // namespace local_e2b
