#include "controller/poll/connections.h"

#include <gtest/gtest.h>

#include "libs/base/files.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/manifests/file_store.h"

namespace controller {
namespace {

Sighting sandbox(const std::string& uid, const std::string& id,
                 e2b::State state = e2b::State::kRunning) {
  return {.id = id, .state = state, .uid = uid};
}

// A folder in which there are providers of those names, read.
std::unique_ptr<manifests::FileStore> store_of(const base::TemporaryFolder& folder,
                                               const base::Clock& clock,
                                               const std::vector<std::string>& providers) {
  std::filesystem::create_directory(folder / "manifests");
  for (const std::string& name : providers)
    EXPECT_TRUE(base::write_file_atomically(
        folder / "manifests" / (name + ".yaml"),
        "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: " + name +
            "}\nspec:\n  api: {url: \"http://127.0.0.1:1\"}\n"
            "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n",
        0644));
  auto store = manifests::FileStore::open(
      {.manifests = folder / "manifests", .state = folder / "state"}, clock);
  EXPECT_TRUE(store) << store.error().message;
  if (!store) return nullptr;
  EXPECT_TRUE((*store)->scan_once());
  return *std::move(store);
}

TEST(Poll, NamesTheSandboxesThatAreNotAsTheyWere) {
  const Polled before{.sandboxes = {sandbox("doubled", "d"), sandbox("gone", "c"),
                                    sandbox("paused", "b"), sandbox("same", "a")}};
  const Polled after{.sandboxes = {sandbox("doubled", "d"), sandbox("doubled", "e"),
                                   sandbox("new", "f"), sandbox("paused", "b", e2b::State::kPaused),
                                   sandbox("same", "a")}};
  EXPECT_EQ(changed_uids(before, after),
            (std::set<std::string>{"paused", "gone", "doubled", "new"}));
}

TEST(Poll, NoticesAnotherRunOfTheSameSandbox) {
  Polled before{.sandboxes = {sandbox("u", "a")}}, after = before;
  after.sandboxes[0].started_at = base::WallTime(base::Milliseconds(5));
  EXPECT_EQ(changed_uids(before, after), std::set<std::string>{"u"});
}

TEST(Connections, TellAKeyThatIsMissingFromOneThatCannotBeOne) {
  const base::TemporaryFolder folder;
  base::FakeClock clock;
  const auto store = store_of(folder, clock, {"one"});
  ASSERT_TRUE(store);
  base::Error trouble{base::ErrorCode::kNotFound, "why"};
  Connections connections(*store, clock,
                          {[&](const auto&) { return base::Result<std::string>(trouble); },
                           [&](const auto&) { return std::shared_ptr<e2b::Cloud>(); }});
  EXPECT_EQ(connections.session("one").error().reason, "CredentialsMissing");
  EXPECT_EQ(connections.session("none").error().reason, "ProviderNotFound");
  trouble.code = base::ErrorCode::kInvalid;
  EXPECT_EQ(connections.session("one").error().reason, "CredentialsInvalid");
  const auto polled = connections.poll("one", {});
  EXPECT_EQ(polled.error().reason, "CredentialsInvalid");
  EXPECT_EQ(polled.error().message, "why");
}

TEST(Connections, SortsWhatItListsByOwner) {
  const base::TemporaryFolder folder;
  base::FakeClock clock;
  const auto store = store_of(folder, clock, {"one"});
  ASSERT_TRUE(store);
  const auto cloud = std::make_shared<e2b::FakeCloud>(clock, e2b::FakeCloud::Callbacks::kByHand);
  Connections connections(*store, clock,
                          {[](const auto&) { return std::string("key"); },
                           [&](const auto&) { return std::shared_ptr<e2b::Cloud>(cloud); }});
  const auto plant = [&](const std::string& uid, const std::string& fleet) {
    return cloud->plant({.template_id = "base",
                         .metadata = {{key::kFleet, fleet},
                                      {key::kUid, uid},
                                      {key::kEpoch, "2"},
                                      {key::kNonce, "n-" + uid}}});
  };
  plant("b", store->fleet_id());
  plant("stranger", "another");
  const std::string id = plant("a", store->fleet_id());
  plant("b", store->fleet_id());
  ASSERT_TRUE(connections.poll("one", {}));
  const auto polled = connections.session("one")->polled;
  EXPECT_EQ(polled->sandboxes.size(), 3u);
  ASSERT_EQ(polled->of("a").size(), 1u);
  EXPECT_EQ(polled->of("a")[0].id, id);
  EXPECT_EQ(polled->of("a")[0].nonce, "n-a");
  EXPECT_EQ(polled->of("a")[0].epoch, 2);
  EXPECT_EQ(polled->of("b").size(), 2u);
  EXPECT_TRUE(polled->of("stranger").empty());
}

TEST(Connections, ForgetsTheProvidersThatAreGone) {
  const base::TemporaryFolder folder;
  base::FakeClock clock;
  const auto store = store_of(folder, clock, {"kept", "gone"});
  ASSERT_TRUE(store);
  const auto cloud = std::make_shared<e2b::FakeCloud>(clock, e2b::FakeCloud::Callbacks::kByHand);
  Connections connections(*store, clock,
                          {[](const auto&) { return std::string("key"); },
                           [&](const auto&) { return std::shared_ptr<e2b::Cloud>(cloud); }});
  for (const std::string name : {"kept", "gone"}) ASSERT_TRUE(connections.poll(name, {}));
  EXPECT_EQ(cloud.use_count(), 3);

  connections.keep_only({"kept"});
  EXPECT_EQ(cloud.use_count(), 2);
  EXPECT_TRUE(connections.session("kept")->polled);
  EXPECT_FALSE(connections.session("gone")->polled) << "it is new again";
}

}  // namespace
}  // namespace controller
