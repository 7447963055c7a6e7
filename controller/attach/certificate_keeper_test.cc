#include "controller/attach/certificate_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/attach/testing/objects.h"
#include "libs/base/crypto.h"
#include "libs/kube/testing/fake_server.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Json;
using testing::HasSubstr;

const std::string kSecretPath =
    "https://api.test/api/v1/namespaces/sandfleet/secrets/sandfleet-attach-tls";
const std::string kMapPath =
    "https://api.test/api/v1/namespaces/sandfleet/configmaps/sandfleet-attach-ca";

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

  Objects objects_;
  kube::FakeServer server_{
      [this](const net::Request& request) { return objects_.answer(request); }};
};

TEST_F(CertificateKeeperTest, MakesPublishesAndThenWritesNothing) {
  auto one = keeper(), other = keeper();
  const auto made = one.turn({});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(objects_.objects[kMapPath]["data"]["ca.crt"], made->bundle);
  EXPECT_EQ(objects_.objects[kSecretPath]["data"]["tls.key"], base::to_base64(made->serving.key));
  const int writes = objects_.writes;
  EXPECT_EQ(*other.turn({}), *made) << "one material for all replicas";
  EXPECT_EQ(*one.turn({}), *made);
  EXPECT_EQ(objects_.writes, writes);
}

TEST_F(CertificateKeeperTest, TakesWhatAnotherMadeMeanwhile) {
  auto one = keeper(), other = keeper();
  std::optional<TlsMaterial> others;
  objects_.before = [&](const net::Request&) {  // Between our look and our write.
    objects_.before = [&](const net::Request& request) {
      EXPECT_EQ(request.method, "POST");
      others = *other.turn({});
    };
  };
  const auto ours = one.turn({});
  ASSERT_TRUE(ours) << ours.error().message;
  ASSERT_TRUE(others);
  EXPECT_EQ(*ours, *others);
}

TEST_F(CertificateKeeperTest, RenewsAndPublishesAgainWhatWasTakenAway) {
  auto one = keeper();
  const auto made = one.turn({});
  ASSERT_TRUE(made);
  server_.clock().advance(std::chrono::hours(24 * 61));
  objects_.objects.erase(kMapPath);
  const auto renewed = one.turn({});
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_NE(renewed->serving, made->serving);
  EXPECT_EQ(objects_.objects[kMapPath]["data"]["ca.crt"], renewed->bundle);
}

TEST_F(CertificateKeeperTest, RenewsNothingThatAnotherRenewedMeanwhile) {
  auto one = keeper(), other = keeper();
  ASSERT_TRUE(one.turn({}));
  server_.clock().advance(std::chrono::hours(24 * 61));
  std::optional<TlsMaterial> others;
  objects_.before = [&](const net::Request&) {  // Between our look and our write.
    objects_.before = [&](const net::Request& request) {
      EXPECT_EQ(request.method, "PATCH");
      others = *other.turn({});
    };
  };
  const auto ours = one.turn({});
  ASSERT_TRUE(ours) << ours.error().message;
  ASSERT_TRUE(others);
  EXPECT_EQ(*ours, *others);
}

TEST_F(CertificateKeeperTest, OnlyReadsWhatSomebodyElseKeeps) {
  auto reader = keeper(false);
  EXPECT_THAT(reader.turn({}).error().message,
              HasSubstr("there is no Secret sandfleet/sandfleet-"));
  const auto made = keeper().turn({});
  ASSERT_TRUE(made);
  objects_.objects.erase(kMapPath);
  objects_.objects[kSecretPath]["data"].erase("authority.key");
  EXPECT_EQ(reader.turn({})->serving, made->serving);
  EXPECT_EQ(objects_.objects[kMapPath]["data"]["ca.crt"], made->bundle);
  server_.clock().advance(std::chrono::hours(24 * 91));
  EXPECT_THAT(reader.turn({}).error().message, HasSubstr("not valid now"));
}

TEST_F(CertificateKeeperTest, GivesUpWhereOthersAreAlwaysFaster) {
  objects_.writes = 0;
  std::function<void(const net::Request&)> again = [&](const net::Request& request) {
    objects_.before = again;
    if (request.method == "GET") objects_.objects.erase(kSecretPath);
    if (request.method == "POST")
      objects_.objects[kSecretPath] = Json{{"metadata", Json::object()}};
  };
  objects_.before = again;
  const auto given_up = keeper().turn({});
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(given_up.error().message, HasSubstr("was written by others at each try"));
}

}  // namespace
}  // namespace controller
