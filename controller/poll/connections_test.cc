#include "controller/poll/connections.h"

#include <gtest/gtest.h>

#include "libs/base/files.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/manifests/file_store.h"

namespace controller {
namespace {

e2b::SandboxInfo sandbox(const std::string& id, e2b::State state = e2b::State::kRunning) {
  return {.id = id, .state = state};
}

TEST(Poll, NamesTheSandboxesThatAreNotAsTheyWere) {
  const Polled before{.sandboxes = {{"same", {sandbox("a")}},
                                    {"paused", {sandbox("b")}},
                                    {"gone", {sandbox("c")}},
                                    {"doubled", {sandbox("d")}}}};
  const Polled after{.sandboxes = {{"same", {sandbox("a")}},
                                   {"paused", {sandbox("b", e2b::State::kPaused)}},
                                   {"doubled", {sandbox("d"), sandbox("e")}},
                                   {"new", {sandbox("f")}}}};
  EXPECT_EQ(changed_uids(before, after),
            (std::set<std::string>{"paused", "gone", "doubled", "new"}));
}

TEST(Poll, NoticesAnotherRunOfTheSameSandbox) {
  Polled before{.sandboxes = {{"u", {sandbox("a")}}}}, after = before;
  after.sandboxes["u"][0].started_at = base::WallTime(base::Milliseconds(5));
  EXPECT_EQ(changed_uids(before, after), std::set<std::string>{"u"});
}

TEST(Connections, TellAKeyThatIsMissingFromOneThatCannotBeOne) {
  const base::TemporaryFolder folder;
  base::FakeClock clock;
  std::filesystem::create_directory(folder / "manifests");
  ASSERT_TRUE(base::write_file_atomically(
      folder / "manifests/one.yaml",
      "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: one}\n"
      "spec:\n  api: {url: \"http://127.0.0.1:1\"}\n"
      "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n",
      0644));
  const auto store = manifests::FileStore::open(
      {.manifests = folder / "manifests", .state = folder / "state"}, clock);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->scan_once());
  base::Error trouble{base::ErrorCode::kNotFound, "why"};
  Connections connections(**store, clock,
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

TEST(Connections, ForgetsTheProvidersThatAreGone) {
  const base::TemporaryFolder folder;
  base::FakeClock clock;
  std::filesystem::create_directory(folder / "manifests");
  for (const std::string name : {"kept", "gone"})
    ASSERT_TRUE(base::write_file_atomically(
        folder / "manifests" / (name + ".yaml"),
        "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: " + name +
            "}\nspec:\n  api: {url: \"http://127.0.0.1:1\"}\n"
            "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n",
        0644));
  const auto store = manifests::FileStore::open(
      {.manifests = folder / "manifests", .state = folder / "state"}, clock);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->scan_once());
  const auto cloud = std::make_shared<e2b::FakeCloud>(clock, e2b::FakeCloud::Callbacks::kByHand);
  Connections connections(
      **store, clock,
      {[](const auto&) { return std::string("key"); }, [&](const auto&) { return cloud; }});
  for (const std::string name : {"kept", "gone"}) ASSERT_TRUE(connections.poll(name, {}));
  EXPECT_EQ(cloud.use_count(), 3);

  connections.keep_only({"kept"});
  EXPECT_EQ(cloud.use_count(), 2);
  EXPECT_TRUE(connections.session("kept")->polled);
  EXPECT_FALSE(connections.session("gone")->polled) << "it is new again";
}

}  // namespace
}  // namespace controller
