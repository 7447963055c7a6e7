#include "local_e2b/control/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/http_client.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/testing/temporary_folder.h"
#include "local_e2b/control/testing/fake_box_host.h"

namespace local_e2b {
namespace {

using aio::testing::kPatience;
using base::Json;
using ::testing::HasSubstr;

// The control plane on a loopback port, over fake boxes.
struct World {
  explicit World(std::vector<std::pair<std::string, std::string>> cannot = {})
      : records(*Records::open(folder.path())),
        keys(*KeyRecords::open(folder.path())),
        host(loop.executor()),
        connections(8),
        fleet(loop.executor(), host, records, connections, clock, {.sandboxes_max = 3}),
        teams(*Teams::parse("red e2b_1\nblue e2b_2")),
        faults(1),
        api({.run_seconds_max = 3'600,
             .admin_token = "admin",
             .cannot = std::move(cannot),
             .body_bytes_max = 4096},
            fleet, keys, teams, faults, requests, clock),
        server(loop.executor(), [this](auto exchange) { return api.handle(exchange); }) {
    port = *server.listen("127.0.0.1", 0);
  }
  ~World() { server.stop(); }
  void run(aio::Task<> story) { aio::testing::run(loop, std::move(story)); }

  base::TemporaryFolder folder;
  base::SystemClock clock;
  aio::Loop loop;
  Records records;
  KeyRecords keys;
  FakeBoxHost host;
  Connections connections;
  Fleet fleet;
  Teams teams;
  Faults faults;
  RequestLogs requests;
  Api api;
  aio::HttpServer server;
  int port = 0;
};

struct Reply {
  int status = 0;  // 0: the connection closed without one.
  Json body;
  aio::HttpFields fields;
  std::string field(const std::string& name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    return "";
  }
};

struct Ask {
  std::string method, target, body = "";
  std::string key = "e2b_1";
  aio::HttpFields fields = {};
};

aio::Task<Reply> ask(World& world, Ask what) {
  auto stream = co_await aio::testing::dial(world.port);
  aio::HttpRequest request{.method = what.method, .target = what.target, .fields = what.fields};
  request.body = what.body;
  if (!what.key.empty()) request.fields.emplace_back("x-api-key", what.key);
  const auto reply = co_await aio::exchange(stream, std::move(request), kPatience);
  if (!reply) co_return Reply{};
  const auto json = base::parse_json(reply->body);
  co_return Reply{reply->status, json ? *json : Json(), reply->fields};
}

aio::Task<std::string> make(World& world, std::string body = R"({"templateID":"base"})") {
  Ask what{"POST", "/v2/sandboxes", body};
  const auto made = co_await ask(world, std::move(what));
  EXPECT_EQ(made.status, 201) << base::to_text(made.body);
  co_return base::text_at(made.body, "sandboxID").value_or("");
}

struct Step {
  Ask what;
  int status;
  const char* message = "";
};

aio::Task<> walk(World& world, std::vector<Step> steps) {
  for (auto& step : steps) {
    const std::string name = step.what.method + " " + step.what.target + " " + step.what.body;
    const auto reply = co_await ask(world, std::move(step.what));
    EXPECT_EQ(reply.status, step.status) << name << "\n" << base::to_text(reply.body);
    EXPECT_FALSE(reply.field("Date").empty());
    if (step.status < 400) continue;
    EXPECT_EQ(base::integer_at(reply.body, "code"), step.status) << name;
    EXPECT_THAT(base::text_at(reply.body, "message").value_or(""), HasSubstr(step.message)) << name;
  }
}

aio::Task<> tells_health(World& world) {
  Ask health{"GET", "/health", "", ""};
  const auto reply = co_await ask(world, std::move(health));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(base::to_text(reply.body),
            R"({"cannot":[{"operation":"pause","reason":"no cgroup"}]})");
}
TEST(Api, TellsWithItsHealthWhatItCannotDo) {
  World world({{"pause", "no cgroup"}});
  world.run(tells_health(world));
}

TEST(Api, AnswersEveryErrorWithItsNumber) {
  World world;
  std::vector<Step> steps{
      {{"GET", "/health", "", ""}, 204},
      {{"GET", "/v2/sandboxes", "", ""}, 401, "header is missing"},
      {{"GET", "/v2/sandboxes", "", "e2b_9"}, 401, "not known"},
      {{"GET", "/nowhere"}, 404, "no such path"},
      {{"PATCH", "/sandboxes"}, 405, "method not allowed"},
      {{"GET", "/sandboxes/iunknown"}, 404, "doesn't exist"},
      {{"DELETE", "/sandboxes/iunknown-6532622b"}, 404, "doesn't exist"},
      {{"GET", "/sandboxes/a-b-c"}, 400, "Invalid sandbox ID"},
      {{"POST", "/sandboxes", "{"}, 400, "validation error: the body is not JSON"},
      {{"POST", "/v2/sandboxes", R"({"templateID":"none"})"}, 404, "template 'none'"},
      {{"POST", "/v2/sandboxes", std::string(5'000, ' ')}, 400, "larger than 4096"},
      {{"POST", "/sandboxes/iunknown/timeout", "{}"}, 400, "validation error: timeout"},
      {{"PUT", "/_local/faults", "{}"}, 401, "X-Admin-Token"},
  };
  world.run(walk(world, std::move(steps)));
}

aio::Task<> lives(World& world) {
  const auto id = co_await make(world, R"({"templateID":"base","metadata":{"k":"v"}})");
  const std::string one = "/sandboxes/" + id;
  std::vector<Step> steps{
      {{"GET", one}, 200},
      {{"GET", one, "", "e2b_2"}, 404, "doesn't exist"},
      {{"POST", one + "/timeout", R"({"timeout":60})"}, 204},
      {{"POST", one + "/refreshes", R"({"duration":60})"}, 204},
      {{"POST", one + "/refreshes"}, 204},
      {{"POST", "/v2" + one + "/connect"}, 200},
      {{"POST", one + "/connect", R"({"timeout":9})"}, 200},
      {{"POST", one + "/connect", "{}"}, 400, "timeout is required"},
      {{"POST", one + "/resume"}, 409, "already running"},
      {{"POST", one + "/pause"}, 204},
      {{"POST", one + "/pause", R"({"memory":true})"}, 409, "already paused"},
      {{"POST", one + "/timeout", R"({"timeout":60})"}, 404},
      {{"POST", "/v2" + one + "/connect", R"({"timeout":60})"}, 201},
      {{"POST", one + "/pause", "{}"}, 204},
      {{"POST", one + "/resume", R"({"timeout":60})"}, 201},
      {{"DELETE", one}, 204},
      {{"DELETE", one}, 404},
      {{"POST", one + "/pause", "{}"}, 404},
      {{"POST", "/v2" + one + "/connect"}, 404},
  };
  co_await walk(world, std::move(steps));
}
TEST(Api, CarriesASandboxThroughItsLife) {
  World world;
  world.run(lives(world));
}

aio::Task<> lists(World& world) {
  co_await make(world, R"({"templateID":"base","metadata":{"user":"a b&c"}})");
  const auto paused = co_await make(world);
  Ask pause{"POST", "/sandboxes/" + paused + "/pause"};
  co_await ask(world, std::move(pause));
  co_await make(world);
  Ask first{"GET", "/v2/sandboxes?limit=2"};
  const auto page = co_await ask(world, std::move(first));
  EXPECT_EQ(page.body.size(), 2u);
  EXPECT_EQ(page.field("X-Total-Running"), "2");
  Ask next{"GET", "/v2/sandboxes?limit=2&nextToken=" + page.field("X-Next-Token")};
  const auto rest = co_await ask(world, std::move(next));
  EXPECT_EQ(rest.body.size(), 1u);
  EXPECT_EQ(rest.field("X-Next-Token"), "");
  Ask filtered{"GET", "/v2/sandboxes?metadata=user%3Da%252520b%252526c&state=running%2Cpaused"};
  EXPECT_EQ((co_await ask(world, std::move(filtered))).body.size(), 1u);
  Ask old{"GET", "/sandboxes"};
  EXPECT_EQ((co_await ask(world, std::move(old))).body.size(), 2u) << "running ones only";
  Ask other{"GET", "/v2/sandboxes", "", "e2b_2"};
  EXPECT_EQ((co_await ask(world, std::move(other))).body.size(), 0u);
}
TEST(Api, ListsPageByPage) {
  World world;
  world.run(lists(world));
}

aio::Task<> has_quota(World& world) {
  for (int i = 0; i < 3; ++i) co_await make(world);
  Ask more{"POST", "/v2/sandboxes", R"({"templateID":"base"})"};
  const auto refused = co_await ask(world, std::move(more));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.field("Retry-After"), "") << "a quota is not a rate";
  world.host.fail("create", 1);
}
TEST(Api, SaysThatItsQuotaIsReached) {
  World world;
  world.run(has_quota(world));
}

Ask keyed(std::string key, std::string body = R"({"templateID":"base"})") {
  return {"POST", "/v2/sandboxes", std::move(body), "e2b_1", {{"Idempotency-Key", std::move(key)}}};
}

aio::Task<> keep_reply(World& world, Ask what, Reply& reply) {
  reply = co_await ask(world, std::move(what));
}

aio::Task<> is_idempotent(World& world) {
  world.host.hold("init");
  aio::TaskGroup group(world.loop.executor());
  Reply first;
  group.spawn(keep_reply(world, keyed("k1"), first));
  while (world.host.waiting.empty()) co_await aio::sleep_for(base::Milliseconds(1));
  const auto early = co_await ask(world, keyed("k1"));
  EXPECT_EQ(early.status, 409);
  EXPECT_EQ(early.body["error_code"], "idempotency_in_progress");
  world.host.release("init");
  co_await group.wait();
  EXPECT_EQ(first.status, 201);
  const auto replay = co_await ask(world, keyed("k1"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.body, first.body);
  EXPECT_EQ(world.host.boxes.size(), 1u);
  const auto other = co_await ask(world, keyed("k1", R"({"templateID":"base","timeout":9})"));
  EXPECT_EQ(other.body["error_code"], "idempotency_request_mismatch");
  EXPECT_EQ((co_await ask(world, keyed("no-dashes"))).status, 400);

  world.host.fail("create", 1);
  const auto failed = co_await ask(world, keyed("k2"));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.field("Should-Retry"), "false");
  EXPECT_EQ((co_await ask(world, keyed("k2"))).status, 500) << "errors are replayed, too";
  EXPECT_EQ(world.host.boxes.size(), 1u);
}
TEST(Api, DoesARequestWithAKeyOnce) {
  World world;
  world.run(is_idempotent(world));
}

// The control plane of a server that starts where the world's one died; the fleet is as adopted.
struct Successor {
  explicit Successor(World& world)
      : api({}, world.fleet, world.keys, world.teams, world.faults, world.requests, world.clock),
        server(world.loop.executor(), [this](auto exchange) { return api.handle(exchange); }) {
    api.take_over_keys();
    world.port = *server.listen("127.0.0.1", 0);
  }
  Api api;
  aio::HttpServer server;
};

aio::Task<> remembers_creation(World& world) {
  const auto made = co_await ask(world, keyed("k1"));
  world.keys.remove("red", "k1");  // As if the server had died before it wrote down its answer.
  const Successor successor(world);
  EXPECT_EQ((co_await ask(world, keyed("k1"))).body, made.body);
  EXPECT_EQ(world.host.boxes.size(), 1u);
}
TEST(Api, KnowsItsKeysAgainAfterACrash) {
  World world;
  world.run(remembers_creation(world));
}

aio::Task<> remembers_what_is_gone(World& world) {
  const auto made = co_await ask(world, keyed("k1"));
  Ask kill{"DELETE", "/sandboxes/" + base::text_at(made.body, "sandboxID").value_or("")};
  EXPECT_EQ((co_await ask(world, std::move(kill))).status, 204);
  const Successor successor(world);
  EXPECT_EQ((co_await ask(world, keyed("k1"))).body, made.body);
  EXPECT_TRUE(world.host.boxes.empty()) << "a key is done once, whatever became of it";
}
TEST(Api, DoesARequestWithAKeyOnceAlsoOverACrash) {
  World world;
  world.run(remembers_what_is_gone(world));
}

aio::Task<> does_not_know_the_outcome(World& world) {
  world.host.hold("create");
  aio::TaskGroup group(world.loop.executor());
  Reply lost;
  group.spawn(keep_reply(world, keyed("k1"), lost));
  while (world.host.waiting.empty()) co_await aio::sleep_for(base::Milliseconds(1));
  const Successor successor(world);
  for (int times = 0; times < 2; ++times) {
    const auto repeat = co_await ask(world, keyed("k1"));
    EXPECT_EQ(repeat.status, 422);
    EXPECT_EQ(repeat.body["code"], 422);
    EXPECT_EQ(repeat.body["error_code"], "idempotency_outcome_unknown");
  }
  const auto other = co_await ask(world, keyed("k1", R"({"templateID":"base","timeout":9})"));
  EXPECT_EQ(other.body["error_code"], "idempotency_request_mismatch");
  world.host.release("create");
  co_await group.wait();
  EXPECT_EQ(world.host.boxes.size(), 1u) << "the one that was under way";
}
TEST(Api, SaysThatItDoesNotKnowWhatCameOfAKey) {
  World world;
  world.run(does_not_know_the_outcome(world));
}

aio::Task<> set_faults(World& world, std::string faults) {
  Ask what{"PUT",
           "/_local/faults",
           R"({"faults":[")" + faults + R"("]})",
           "",
           {{"X-Admin-Token", "admin"}}};
  const auto set = co_await ask(world, std::move(what));
  EXPECT_EQ(set.status, 204) << base::to_text(set.body);
}

aio::Task<> suffers(World& world) {
  co_await set_faults(world, "create:lost-reply:count=1");
  Ask lost{"POST", "/v2/sandboxes", R"({"templateID":"base"})"};
  EXPECT_EQ((co_await ask(world, std::move(lost))).status, 0);
  EXPECT_EQ(world.host.boxes.size(), 1u) << "it happened, and nobody was told";

  co_await set_faults(world, "create:late-effect:ms=30:count=1");
  Ask late{"POST", "/v2/sandboxes", R"({"templateID":"base"})"};
  EXPECT_EQ((co_await ask(world, std::move(late))).status, 0);
  EXPECT_EQ(world.host.boxes.size(), 1u) << "not yet";
  const auto deadline = world.clock.now() + kPatience;
  while (world.host.boxes.size() < 2 && world.clock.now() < deadline)
    co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_EQ(world.host.boxes.size(), 2u);

  co_await set_faults(world, "get:latency:ms=30");
  const auto before = world.clock.now();
  Ask slow{"GET", "/sandboxes/iunknown"};
  EXPECT_EQ((co_await ask(world, std::move(slow))).status, 404);
  EXPECT_GE(world.clock.now() - before, base::Milliseconds(30));

  Ask log{"GET", "/_local/requests"};
  const auto seen = co_await ask(world, std::move(log));
  EXPECT_EQ(seen.body["requests"].size(), 3u);
  EXPECT_EQ(seen.body["requests"][0]["status"], 201);
  EXPECT_EQ(seen.body["requests"][0]["fault"], "lost-reply");
  EXPECT_EQ(seen.body["requests"][1]["fault"], "late-effect, delay 30 ms");
}
TEST(Api, SuffersTheFaultsThatATestAsksFor) {
  World world;
  world.run(suffers(world));
}

}  // namespace
}  // namespace local_e2b
