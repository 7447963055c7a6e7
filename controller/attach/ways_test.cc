#include "controller/attach/ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/attach/testing/scene.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/wire/admin.h"

namespace controller {
namespace {

using base::ErrorCode;

class WaysTest : public testing::Test, Providers {
 protected:
  WaysTest() {
    store_.sandbox.status.sandbox_id = cloud_->create({.template_id = "base"}, {})->id;
    provider_->spec.data_url = "https://data.test";
  }
  base::Result<Session, ProviderProblem> session(const std::string& name) override {
    if (name == store_.sandbox.spec.provider) return Session{provider_, gate_};
    return ProviderProblem{{ErrorCode::kNotFound, "there is no SandboxProvider " + name}, {}};
  }

  const std::string& id() const { return store_.sandbox.status.sandbox_id; }
  // The traffic token of the way; with the right address, and nothing else of worth.
  std::optional<std::string> token() {
    const auto way = ways_.to(store_.sandbox, {});
    EXPECT_TRUE(way) << way.error().message;
    if (!way) return std::nullopt;
    EXPECT_EQ(way->url,
              "https://" + std::to_string(wire::kExecutorPort) + "-" + id() + ".data.test");
    const auto token = way->headers.find("E2b-Traffic-Access-Token");
    EXPECT_EQ(way->headers.all().size(), token ? 1 : 0);
    return token;
  }
  std::size_t changes() const { return cloud_->calls().size() - 1 - looks(); }
  std::size_t looks() const { return cloud_->count(e2b::Operation::kHandle); }

  base::FakeClock clock_;
  const std::shared_ptr<e2b::FakeCloud> cloud_ = std::make_shared<e2b::FakeCloud>(clock_);
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>(cloud_, clock_);
  const std::shared_ptr<api::SandboxProvider> provider_ = std::make_shared<api::SandboxProvider>();
  OneSandbox store_;
  Memories memories_;
  Ways ways_{store_, *this, memories_};
};

TEST_F(WaysTest, AreThoseThatOurOwnCallsTold) {
  memories_.update("u1", [&](Memory& memory) {
    memory.handle = e2b::Handle{
        .id = id(), .envd_access_token = "not for others", .traffic_access_token = "ours"};
  });
  EXPECT_EQ(token(), "ours");
  EXPECT_EQ(looks(), 0);
}

TEST_F(WaysTest, AreLookedUpByWhoDoesNotActForTheSandbox) {
  memories_.update("u1", [](Memory& memory) { memory.handle = e2b::Handle{.id = "one before"}; });
  EXPECT_EQ(token(), cloud_->truth_of(id())->traffic_access_token);
  EXPECT_EQ(looks(), 1);
}

TEST_F(WaysTest, AreInTheStoreWhereTheProviderTellsThemOnce) {
  cloud_->hide_tokens(true);
  store_.kept = api::ResourceStore::WayIn{.sandbox_id = id(), .traffic_token = "kept"};
  EXPECT_EQ(token(), "kept");
  store_.kept->sandbox_id = "one before";
  EXPECT_EQ(token(), std::nullopt) << "a sandbox may be open to all";
  EXPECT_EQ(changes(), 0) << "a connect might wake it";
}

TEST_F(WaysTest, AreNotKnownWhereNobodyAnswers) {
  cloud_->script(e2b::Operation::kHandle, {e2b::Fault::Kind::kNotSent});
  EXPECT_EQ(ways_.to(store_.sandbox, {}).error().code, ErrorCode::kUnavailable);
  api::Sandbox stray = store_.sandbox;
  stray.spec.provider = "gone";
  EXPECT_EQ(ways_.to(stray, {}).error().message, "there is no SandboxProvider gone");
}

}  // namespace
}  // namespace controller
