#include <gtest/gtest.h>

#include <cstdio>

#include "controller/cluster/cluster_store.h"
#include "controller/heartbeat/engine.h"
#include "controller/poll/connections.h"
#include "controller/reconcile/memories.h"
#include "controller/reconcile/testing/scenes.h"
#include "libs/base/testing/eventually.h"
#include "libs/base/testing/live_bytes.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/kube/testing/fake_server.h"
#include "libs/kube/testing/running_sandbox.h"

// What a Sandbox that runs costs the controller of a cluster, in everything that keeps something of
// it while nothing happens.
namespace controller {
namespace {

using namespace std::chrono_literals;
using base::Json;

constexpr int kSandboxes = 500;
constexpr long kBytesMax = 4'096;  // Of one, all parts together.

Json a_provider() {
  return {{"apiVersion", "sandfleet.dev/v1alpha1"},
          {"kind", "SandboxProvider"},
          {"metadata", {{"name", "default"}, {"uid", "p"}, {"resourceVersion", "7"}}},
          {"spec",
           {{"api", {{"url", "http://127.0.0.1:1"}}},
            {"data", {{"url", "http://127.0.0.1:2"}, {"routing", "Header"}}}}}};
}

net::Answer play(const net::Request& request) {
  const auto asks = [&](const char* part) { return request.url.find(part) != std::string::npos; };
  if (asks("sendInitialEvents"))
    return net::answer(422, R"({"kind":"Status","reason":"Invalid","message":"forbidden"})");
  if (asks("watch=true")) return net::silent_answer();
  Json items = Json::array();
  if (asks("/sandboxproviders"))
    items.push_back(a_provider());
  else
    for (int number = 0; number < kSandboxes; ++number)
      items.push_back(kube::running_sandbox(number));
  return net::answer(200, base::to_text(Json{{"metadata", {{"resourceVersion", "200000"}}},
                                             {"items", std::move(items)}}));
}

// Of one Sandbox, since the last time.
class Scales {
 public:
  long weigh(const char* what) {
    const long each = (base::live_bytes - before_) / kSandboxes;
    std::printf("%-12s %5ld bytes each\n", what, each);
    before_ = base::live_bytes;
    return each;
  }

 private:
  long before_ = base::live_bytes;
};

TEST(ControllerMemory, KeepsASandboxInLittle) {
  base::FakeClock clock;
  const auto cloud = std::make_shared<e2b::FakeCloud>(clock, e2b::FakeCloud::Callbacks::kByHand);
  for (int number = 0; number < kSandboxes; ++number) {
    const api::Metadata owner = kube::identity_of(kube::running_sandbox(number));
    cloud->plant({.template_id = "base",
                  .metadata = {{key::kFleet, "fleet"},
                               {key::kNamespace, owner.key.space},
                               {key::kName, owner.key.name},
                               {key::kUid, owner.uid},
                               {key::kEpoch, "1"},
                               {key::kNonce, std::string(32, 'n')}}});
  }
  kube::FakeServer server(play);
  Scales scales;

  ClusterStore store(server.client(), clock, {.fleet_id = "fleet"});
  ASSERT_TRUE(store.start(200s, {}));
  // The lists are freed a moment after they are taken in: the watches come after them.
  ASSERT_TRUE(base::eventually(
      [&] { return server.transport().count("GET", "resourceVersion=200000") == 2; }));
  long all = scales.weigh("mirror");

  const std::string id = "i0123456789abcdefghij";
  Memories memories;
  for (const auto& each : store.sandboxes())
    memories.update(each->metadata.uid,
                    [&](Memory& memory) { memory = scene::at_rest(id, each->metadata.uid); });
  all += scales.weigh("memories");

  Connections connections(store, clock,
                          {[](const auto&) { return std::string("key"); },
                           [&](const auto&) { return std::shared_ptr<e2b::Cloud>(cloud); }});
  ASSERT_TRUE(connections.poll("default", {}));
  const auto session = connections.session("default");
  ASSERT_EQ(session->polled->sandboxes.size(), static_cast<std::size_t>(kSandboxes));
  all += scales.weigh("last list");

  Engine engine(clock, {}, {});
  for (const auto& each : store.sandboxes())
    engine.keep({.uid = each->metadata.uid, .id = id, .gate = session->gate});
  all += scales.weigh("heartbeats");

  kube::Queue queue(clock);
  for (const auto& each : store.sandboxes()) queue.add_after(each->metadata.key, 300s);
  all += scales.weigh("queue");

  std::printf("%ld bytes each in all\n", all);
  RecordProperty("bytes_each", static_cast<int>(all));
  EXPECT_LE(all, kBytesMax);
}

}  // namespace
}  // namespace controller
