#include "controller/cluster/provider_keys.h"

#include <gmock/gmock.h>

#include "libs/base/testing/eventually.h"

namespace controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProviderKeysTest : public testing::Test {
 protected:
  std::shared_ptr<const api::SandboxProvider> provider(const std::string& name,
                                                       const std::string& secret) {
    api::SandboxProvider made{.metadata = {.key = {"", name}}};
    if (!secret.empty()) made.spec.credentials = {secret, "apiKey"};
    return std::make_shared<const api::SandboxProvider>(made);
  }
  base::Result<std::string> read(const api::SandboxProvider& provider) {
    ++reads_;
    if (!provider.spec.credentials) return std::string("of the environment");
    const auto found = secrets_.find(provider.spec.credentials->name);
    if (found != secrets_.end()) return found->second;
    return base::error(base::ErrorCode::kNotFound, "there is none");
  }

  std::map<std::string, std::string> secrets_{{"s", "one"}};
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers_{provider("default", "s")};
  std::atomic<int> reads_ = 0;
  std::vector<std::string> changed_;
  ProviderKeys keys_{{[this] { return providers_; },
                      [this](const auto& provider) { return read(provider); },
                      [this](const std::string& name) { changed_.push_back(name); }}};
};

TEST_F(ProviderKeysTest, ReadsAKeyOnceAndAgainWhenItIsTime) {
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "one");
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "one");
  EXPECT_EQ(reads_, 1);
  keys_.refresh();
  EXPECT_THAT(changed_, IsEmpty());
  secrets_["s"] = "two";
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "one");
  keys_.refresh();
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "two");
  EXPECT_THAT(changed_, ElementsAre("default"));
}

TEST_F(ProviderKeysTest, GoesOnWithTheLastKeyWhenThereIsNoNewer) {
  EXPECT_TRUE(keys_.api_key(*providers_[0]));
  secrets_.clear();
  keys_.refresh();
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "one");
  EXPECT_THAT(changed_, IsEmpty());
}

TEST_F(ProviderKeysTest, AsksForAMissingKeyOnlyWhenItIsTime) {
  secrets_.clear();
  EXPECT_FALSE(keys_.api_key(*providers_[0]));
  EXPECT_FALSE(keys_.api_key(*providers_[0]));
  EXPECT_EQ(reads_, 1);
  keys_.refresh();
  EXPECT_THAT(changed_, IsEmpty());
  secrets_["s"] = "late";
  keys_.refresh();
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "late");
  EXPECT_THAT(changed_, ElementsAre("default"));
}

TEST_F(ProviderKeysTest, FollowsAProviderToAnotherSecretAndForgetsIt) {
  EXPECT_TRUE(keys_.api_key(*providers_[0]));
  secrets_["t"] = "other";
  providers_[0] = provider("default", "t");
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "other");
  providers_[0] = provider("default", "");
  EXPECT_EQ(*keys_.api_key(*providers_[0]), "of the environment");
  providers_.clear();
  keys_.refresh();
  secrets_["t"] = "newer";
  EXPECT_EQ(*keys_.api_key(*provider("default", "t")), "newer");
}

TEST_F(ProviderKeysTest, RefreshesByItself) {
  EXPECT_TRUE(keys_.api_key(*providers_[0]));
  keys_.start(base::Milliseconds(1));
  EXPECT_TRUE(base::eventually([&] { return reads_ > 3; }));
}

}  // namespace
}  // namespace controller
