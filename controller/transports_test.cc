#include "controller/transports.h"

#include <gtest/gtest.h>

#include "controller/prepare/sandbox_reach.h"
#include "libs/net/testing/tls_server.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

// A provider whose API and data plane are one TLS server that only its own authority vouches for.
class TransportsTest : public testing::Test {
 protected:
  api::SandboxProvider provider(const std::string& authorities) const {
    api::SandboxProvider provider;
    provider.spec.api_url = provider.spec.data_url = server_.url();
    provider.spec.routing = api::Routing::kHeader;
    provider.spec.ca_bundle = authorities;
    return provider;
  }
  base::Result<wire::Health> reach_inside(const api::SandboxProvider& provider) {
    SandboxReach reach([&](const api::ProviderSpec& spec) { return transports_.inside(spec); },
                       clock_, std::string(32, 'k'), {});
    return reach.quiesce({provider.spec, {.id = "sb-1"}, "uid-1", 1}, {}, {});
  }
  void call_api(const api::SandboxProvider& provider) {
    const auto cloud = transports_.connect(
        provider, clock_, [](const auto&) { return base::Result<std::string>("key"); });
    (void)cloud->get("sb-1", {});
  }

  const base::SystemClock clock_;
  const net::TlsIdentity authority_, stranger_;
  const net::TlsServer server_{authority_, nullptr,
                               base::to_text(wire::to_json(wire::Health{
                                   .instance = "i-1", .identity = {"uid-1", 1, 1, 1}}))};
  Transports transports_;
};

TEST_F(TransportsTest, BelievesTheProvidersAuthoritiesForItsDataPlaneToo) {
  const auto health = reach_inside(provider(authority_.certificate_pem()));
  ASSERT_FALSE(health) << "it answers everybody the same, so it proves nothing";
  EXPECT_EQ(health.error().code, base::ErrorCode::kDenied) << health.error().message;
  call_api(provider(authority_.certificate_pem()));
  EXPECT_EQ(server_.requests(), 2);
}

TEST_F(TransportsTest, TellsNothingToADataPlaneThatNobodyVouchesFor) {
  for (const std::string& authorities : {std::string(), stranger_.certificate_pem()}) {
    EXPECT_FALSE(reach_inside(provider(authorities)));
    call_api(provider(authorities));
  }
  EXPECT_EQ(server_.requests(), 0);
}

TEST_F(TransportsTest, KeepsThoseOfAProviderWhileItIsConnected) {
  const auto key = [](const auto&) { return base::Result<std::string>("key"); };
  const auto used = provider(authority_.certificate_pem());
  auto cloud = transports_.connect(used, clock_, key);
  const std::weak_ptr<net::Transport> inside = transports_.inside(used.spec);
  const auto other = transports_.connect(provider(stranger_.certificate_pem()), clock_, key);
  EXPECT_EQ(inside.lock(), transports_.inside(used.spec));
  cloud.reset();
  const auto third = transports_.connect(provider(""), clock_, key);
  EXPECT_TRUE(inside.expired());
}

}  // namespace
}  // namespace controller
