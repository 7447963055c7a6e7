#include "controller/attach/certificate_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cluster/testing/kept_objects.h"
#include "libs/base/crypto.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Json;
using testing::HasSubstr;

const std::string kSecretPath = "/api/v1/namespaces/sandfleet/secrets/sandfleet-attach-tls";
const std::string kMapPath = "/api/v1/namespaces/sandfleet/configmaps/sandfleet-attach-ca";

class CertificateKeeperTest : public testing::Test {
 protected:
  CertificateKeeper keeper(bool ours = true) {
    return {server_.client(),
            server_.clock(),
            {.space = "sandfleet",
             .secret = "sandfleet-attach-tls",
             .authorities = "sandfleet-attach-ca",
             .ours = ours,
             .terms = {.names = {"attach.svc"}}}};
  }

  std::size_t writes() {
    return static_cast<std::size_t>(std::ranges::count_if(
        server_.transport().requests(), [](const auto& each) { return each.method != "GET"; }));
  }

  // The other writes between our look and our first write by that method, and both end up with his.
  void expect_that_the_other_is_faster(CertificateKeeper& one, CertificateKeeper& other,
                                       const char* method) {
    std::optional<TlsMaterial> others;
    bool looked_only = true;
    kept_.before_each = [&](const net::Request& request) {
      if (request.method == method && std::exchange(looked_only, false)) others = *other.turn({});
    };
    const auto ours = one.turn({});
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(others);
    EXPECT_EQ(*ours, *others);
  }

  KeptObjects kept_;
  kube::FakeServer server_{[this](const net::Request& request) { return kept_.answer(request); }};
};

TEST_F(CertificateKeeperTest, MakesPublishesAndThenWritesNothing) {
  auto one = keeper(), other = keeper();
  const auto made = one.turn({});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(kept_.objects[kMapPath]["data"]["ca.crt"], made->bundle);
  EXPECT_EQ(kept_.objects[kSecretPath]["data"]["tls.key"], base::to_base64(made->serving.key));
  const std::size_t before = writes();
  EXPECT_EQ(*other.turn({}), *made) << "one material for all replicas";
  EXPECT_EQ(*one.turn({}), *made);
  EXPECT_EQ(writes(), before);
}

TEST_F(CertificateKeeperTest, TakesWhatAnotherMadeMeanwhile) {
  auto one = keeper(), other = keeper();
  expect_that_the_other_is_faster(one, other, "POST");
}

TEST_F(CertificateKeeperTest, RenewsAndPublishesAgainWhatWasTakenAway) {
  auto one = keeper();
  const auto made = one.turn({});
  ASSERT_TRUE(made);
  server_.clock().advance(std::chrono::hours(24 * 61));
  kept_.objects.erase(kMapPath);
  const auto renewed = one.turn({});
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_NE(renewed->serving, made->serving);
  EXPECT_EQ(kept_.objects[kMapPath]["data"]["ca.crt"], renewed->bundle);
}

TEST_F(CertificateKeeperTest, RenewsNothingThatAnotherRenewedMeanwhile) {
  auto one = keeper(), other = keeper();
  ASSERT_TRUE(one.turn({}));
  server_.clock().advance(std::chrono::hours(24 * 61));
  expect_that_the_other_is_faster(one, other, "PATCH");
}

TEST_F(CertificateKeeperTest, OnlyReadsWhatSomebodyElseKeeps) {
  auto reader = keeper(false);
  EXPECT_THAT(reader.turn({}).error().message,
              HasSubstr("there is no Secret sandfleet/sandfleet-"));
  const auto made = keeper().turn({});
  ASSERT_TRUE(made);
  kept_.objects.erase(kMapPath);
  kept_.objects[kSecretPath]["data"].erase("authority.key");
  EXPECT_EQ(reader.turn({})->serving, made->serving);
  EXPECT_EQ(kept_.objects[kMapPath]["data"]["ca.crt"], made->bundle);
  server_.clock().advance(std::chrono::hours(24 * 91));
  EXPECT_THAT(reader.turn({}).error().message, HasSubstr("not valid now"));
}

TEST_F(CertificateKeeperTest, GivesUpWhereOthersAreAlwaysFaster) {
  kept_.before_each = [this](const net::Request& request) {
    if (request.method == "GET") kept_.erase(kSecretPath);
    if (request.method == "POST") kept_.put(kSecretPath, Json::object());
  };
  const auto given_up = keeper().turn({});
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ErrorCode::kConflict);
  EXPECT_EQ(writes(), std::size_t{kEditTriesMax});
}

}  // namespace
}  // namespace controller
