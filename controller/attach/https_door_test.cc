#include "controller/attach/https_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>

#include "controller/attach/reviewed_access.h"
#include "controller/attach/testing/scene.h"
#include "controller/cluster/testing/kept_objects.h"
#include "libs/base/testing/eventually.h"
#include "libs/net/curl_transport.h"
#include "libs/wire/attach.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::Json;

const std::string kOurs = "/api/v1/namespaces/sandfleet/";
const std::string kMap = kOurs + "configmaps/attach-ca";
const std::string kSecret = kOurs + "secrets/attach-tls";

// Says nothing until nobody waits for it any more.
struct Mute final : Reviewer {
  base::Result<Caller> identify(const std::string&, std::stop_token stop) override {
    std::unique_lock lock(mutex);
    asked = true;
    changed.notify_all();
    changed.wait(lock, stop, [] { return false; });
    return base::Error{base::ErrorCode::kUnavailable, "stopped"};
  }
  base::Result<base::Done> allow(const Caller&, const api::Key&, std::stop_token) override {
    return base::Done{};
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked; });
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  bool asked = false;
};

class HttpsDoorTest : public testing::Test {
 protected:
  static HttpsDoorSettings settings() {
    return {.address = "127.0.0.1",
            .certificates = {.space = "sandfleet",
                             .secret = "attach-tls",
                             .authorities = "attach-ca",
                             .terms = {.names = {"127.0.0.1"}}},
            .look = 20ms,
            .look_while_closed = 20ms};
  }
  std::unique_ptr<HttpsDoor> closed_door(
      AttachService& service, const HttpsDoorSettings& settings = HttpsDoorTest::settings()) {
    return std::make_unique<HttpsDoor>(service, server_.client(), clock_, registry_, settings);
  }
  std::unique_ptr<HttpsDoor> open_door(
      AttachService& service, const HttpsDoorSettings& settings = HttpsDoorTest::settings()) {
    auto door = closed_door(service, settings);
    door->open();
    EXPECT_TRUE(base::eventually([&] { return door->port() != 0; })) << door->trouble();
    return door;
  }
  std::string published_bundle() {
    const auto found = kept_.find(kMap);
    return found ? (*found)["data"]["ca.crt"].get<std::string>() : std::string();
  }
  // As an agent would, who keeps its connection; 0: no answer.
  static int status_of(std::uint16_t port, net::Transport& transport,
                       const std::string& token = "c4n4ry") {
    const auto reply = transport.send(
        {.method = "POST",
         .url = "https://127.0.0.1:" + std::to_string(port) + std::string(wire::kAttachPath),
         .headers = {{"Authorization", "Bearer " + token}},
         .body = R"({"namespace":"team-a","name":"box"})"},
        20s, {});
    return reply ? reply->status : 0;
  }
  // The same by one who believes `bundle`.
  static int status_of(const HttpsDoor& door, const std::string& bundle) {
    return status_of(door.port(), *net::curl_transport({.ca_bundle = bundle}));
  }

  base::SystemClock clock_;  // Who verifies a certificate looks at his own.
  KeptObjects kept_;
  std::atomic<bool> away_ = false;
  kube::FakeServer server_{[this](const net::Request& request) {
    return away_ ? net::answer(503, "{}") : kept_.answer(request);
  }};
  OneSandbox store_;
  Bearer reviewer_;
  ReviewedAccess access_{reviewer_, clock_};
  metrics::Registry registry_{attach_metrics()};
  const AttachService::WayTo way_to_ = [](const api::Sandbox&,
                                          std::stop_token) -> base::Result<envd::Route> {
    return envd::Route{"https://24984-i1.example.dev", {}};
  };
  AttachService service_{{store_, access_, clock_, registry_}, kFleetKey, way_to_};
};

TEST_F(HttpsDoorTest, OpensOnceThereIsACertificateAndSaysWhyItCannot) {
  away_ = true;
  const auto door = closed_door(service_);
  EXPECT_EQ(door->trouble(), "the attach service: not opened yet");
  door->open();
  EXPECT_TRUE(base::eventually([&] {
    return door->trouble().starts_with("the attach service: get secrets sandfleet/attach-tls:");
  })) << door->trouble();
  EXPECT_EQ(door->port(), 0);
  away_ = false;
  EXPECT_TRUE(base::eventually([&] { return door->trouble().empty(); })) << door->trouble();
  EXPECT_EQ(status_of(*door, published_bundle()), 200);
}

TEST_F(HttpsDoorTest, FollowsItsCertificate) {
  const auto door = open_door(service_);
  const std::string before = published_bundle();
  EXPECT_EQ(status_of(*door, before), 200);
  kept_.erase(kSecret);
  EXPECT_TRUE(base::eventually([&] {
    const std::string after = published_bundle();
    return after != before && status_of(*door, after) == 200;
  }));
}

TEST_F(HttpsDoorTest, TellsWhenItsCertificateEnds) {
  const auto door = open_door(service_);
  const auto left = [&] {
    return registry_.gauge("sandfleet_attach_certificate_expiry_timestamp_seconds").value() -
           std::chrono::duration<double>(clock_.wall().time_since_epoch()).count();
  };
  const double days = 24.0 * 3600;
  EXPECT_TRUE(base::eventually([&] { return left() > 89 * days && left() < 91 * days; })) << left();
}

TEST_F(HttpsDoorTest, StaysOpenWhileTheApiServerIsAway) {
  const auto door = open_door(service_);
  away_ = true;
  const auto asked = server_.transport().requests().size();
  ASSERT_TRUE(base::eventually([&] { return server_.transport().requests().size() > asked + 2; }));
  EXPECT_EQ(status_of(*door, published_bundle()), 200);
}

TEST_F(HttpsDoorTest, HasRoomForSoManyAtOnceAndForSoManyFromOneAddress) {
  for (const bool each : {false, true}) {
    HttpsDoorSettings settings = this->settings();
    (each ? settings.connections_each_max : settings.connections_max) = 2;
    const auto door = open_door(service_, settings);
    const std::string bundle = published_bundle();
    const auto first = net::curl_transport({.ca_bundle = bundle});
    const auto second = net::curl_transport({.ca_bundle = bundle});
    EXPECT_EQ(status_of(door->port(), *first), 200);
    EXPECT_EQ(status_of(door->port(), *second), 200);
    EXPECT_EQ(status_of(*door, bundle), 0) << "both are still connected";
    EXPECT_EQ(status_of(door->port(), *first), 200);
  }
}

TEST_F(HttpsDoorTest, TakesTheLongestToken) {
  const auto door = open_door(service_);
  const auto transport = net::curl_transport({.ca_bundle = published_bundle()});
  const std::string longest(wire::kHarnessTokenBytesMax, 'x');
  EXPECT_EQ(status_of(door->port(), *transport, longest), 403) << "heard, and not believed";
}

TEST_F(HttpsDoorTest, WaitsForNobodyAtItsEnd) {
  Mute mute;
  ReviewedAccess access(mute, clock_);
  AttachService service({store_, access, clock_, registry_}, kFleetKey, way_to_);
  auto door = open_door(service);
  const std::string bundle = published_bundle();
  std::jthread caller([&, port = door->port()] {
    EXPECT_THAT(status_of(port, *net::curl_transport({.ca_bundle = bundle})),
                testing::AnyOf(0, 503));
  });
  mute.wait_until_asked();
  door.reset();
}

}  // namespace
}  // namespace controller
