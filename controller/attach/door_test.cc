#include "controller/attach/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/attach/testing/objects.h"
#include "controller/attach/testing/scene.h"
#include "libs/base/testing/eventually.h"
#include "libs/kube/testing/fake_server.h"
#include "libs/net/curl_transport.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::Json;

const std::string kMaps = "https://api.test/api/v1/namespaces/sandfleet/configmaps/";
const std::string kSecrets = "https://api.test/api/v1/namespaces/sandfleet/secrets/";

class DoorTest : public testing::Test {
 protected:
  Door door() {
    return {service_,
            server_.client(),
            clock_,
            {.address = "127.0.0.1",
             .certificates = {.space = "sandfleet", .terms = {.names = {"127.0.0.1"}}},
             .look = 20ms,
             .look_while_closed = 20ms}};
  }
  std::string published_bundle() {
    std::lock_guard lock(objects_.mutex);
    const auto found = objects_.objects.find(kMaps + std::string(kAttachAuthorityMap));
    return found == objects_.objects.end() ? std::string()
                                           : found->second["data"]["ca.crt"].get<std::string>();
  }
  // As an agent would, who believes what is published; 0: no answer.
  int status_of(const Door& door, const std::string& bundle) {
    const auto transport = net::curl_transport({.ca_bundle = bundle});
    const auto reply = transport->send(
        {.method = "POST",
         .url = "https://127.0.0.1:" + std::to_string(door.port()) + std::string(kAttachPath),
         .headers = {{"Authorization", "Bearer c4n4ry"}},
         .body = R"({"namespace":"team-a","name":"box"})"},
        20s, {});
    return reply ? reply->status : 0;
  }

  base::SystemClock clock_;  // Who verifies a certificate looks at his own.
  Objects objects_;
  std::atomic<bool> away_ = false;
  kube::FakeServer server_{[this](const net::Request& request) {
    return away_ ? net::answer(503, "{}") : objects_.answer(request);
  }};
  OneSandbox store_;
  Bearer reviewer_;
  Access access_{reviewer_, clock_};
  metrics::Registry registry_{{{metrics::Kind::kCounter,
                                "sandfleet_attach_requests_total",
                                "Requests for a way in, by what came of them.",
                                {"result"}}}};
  AttachService service_{{store_, access_, clock_, registry_},
                         kFleetKey,
                         [](const api::Sandbox&, std::stop_token) -> base::Result<envd::Route> {
                           return envd::Route{"https://24984-i1.example.dev", {}};
                         }};
};

TEST_F(DoorTest, OpensOnceThereIsACertificate) {
  away_ = true;
  const Door door = this->door();
  EXPECT_EQ(door.port(), 0);
  away_ = false;
  ASSERT_TRUE(base::eventually([&] { return door.port() != 0; }));
  EXPECT_EQ(status_of(door, published_bundle()), 200);
}

TEST_F(DoorTest, FollowsItsCertificate) {
  const Door door = this->door();
  ASSERT_TRUE(base::eventually([&] { return door.port() != 0; }));
  const std::string before = published_bundle();
  EXPECT_EQ(status_of(door, before), 200);
  {
    std::lock_guard lock(objects_.mutex);
    objects_.objects.erase(kSecrets + std::string(kAttachSecret));
  }
  EXPECT_TRUE(base::eventually([&] {
    const std::string after = published_bundle();
    return after != before && status_of(door, after) == 200;
  }));
}

TEST_F(DoorTest, StaysOpenWhileTheApiServerIsAway) {
  const Door door = this->door();
  ASSERT_TRUE(base::eventually([&] { return door.port() != 0; }));
  away_ = true;
  const auto asked = server_.transport().requests().size();
  ASSERT_TRUE(base::eventually([&] { return server_.transport().requests().size() > asked + 2; }));
  EXPECT_EQ(status_of(door, published_bundle()), 200);
}

}  // namespace
}  // namespace controller
