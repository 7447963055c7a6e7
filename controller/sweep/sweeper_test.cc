#include "controller/sweep/sweeper.h"

#include <gtest/gtest.h>

#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/manifests/file_store.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

class OneProvider final : public Providers {
 public:
  explicit OneProvider(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  base::Result<Session, ProviderProblem> session(const std::string&) override {
    return Session{std::make_shared<api::SandboxProvider>(), gate_};
  }

 private:
  std::shared_ptr<Gate> gate_;
};

class SweeperTest : public testing::Test {
 protected:
  SweeperTest() {
    std::filesystem::create_directory(folder_ / "manifests");
    auto opened = manifests::FileStore::open(
        {.manifests = folder_ / "manifests", .state = folder_ / "state"}, clock_);
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = *std::move(opened);
    sweeper_ = std::make_unique<Sweeper>(*store_, provider_, clock_, 2min);
  }

  // An E2B sandbox of our fleet that no resource owns.
  std::string stray() {
    return cloud_->plant({.template_id = "base",
                          .timeout = 3600s,
                          .metadata = {{key::kFleet, store_->fleet_id()},
                                       {key::kNamespace, "default"},
                                       {key::kName, "gone"},
                                       {key::kUid, "uid-1"},
                                       {key::kEpoch, "1"},
                                       {key::kNonce, "n1"}}});
  }
  Swept sweep() {
    const auto swept = sweeper_->sweep("default", {});
    EXPECT_TRUE(swept) << swept.error().message;
    clock_.advance(1min);
    return swept ? *swept : Swept{};
  }
  std::size_t released() { return store_->releases("default")->size(); }

  base::TemporaryFolder folder_;
  base::FakeClock clock_;
  std::shared_ptr<e2b::FakeCloud> cloud_ =
      std::make_shared<e2b::FakeCloud>(clock_, e2b::FakeCloud::Callbacks::kByHand);
  OneProvider provider_{std::make_shared<Gate>(cloud_, clock_)};
  std::unique_ptr<manifests::FileStore> store_;
  std::unique_ptr<Sweeper> sweeper_;
};

TEST_F(SweeperTest, KillsAnOrphanOnceItsGraceIsOver) {
  const std::string id = stray();
  EXPECT_EQ(sweep().killed, 0u);
  EXPECT_EQ(sweep().killed, 0u);
  EXPECT_EQ(sweep().killed, 1u);
  EXPECT_EQ(cloud_->find(id), std::nullopt);
}

TEST_F(SweeperTest, SparesWhatIsReleasedWithoutALookAtEach) {
  const std::string id = stray();
  ASSERT_TRUE(store_->add_release({id, "uid-1", "default", "Leave", clock_.wall()}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sweep().orphans, 0u);
  EXPECT_NE(cloud_->find(id), std::nullopt);
  EXPECT_EQ(cloud_->count(e2b::Operation::kGet), 0u);
  EXPECT_EQ(released(), 1u);
}

TEST_F(SweeperTest, ForgetsAReleaseThatListAndLookMissTwice) {
  const std::string id = stray();
  ASSERT_TRUE(store_->add_release({id, "uid-1", "default", "Leave", clock_.wall()}));
  cloud_->end(id);
  sweep();
  EXPECT_EQ(released(), 1u);
  sweep();
  EXPECT_EQ(released(), 0u);
}

TEST_F(SweeperTest, CountsAnewForAReleaseThatWentAndCameBack) {
  const api::ResourceStore::Release release{"sb-gone", "uid-1", "default", "Leave", clock_.wall()};
  ASSERT_TRUE(store_->add_release(release));
  sweep();
  ASSERT_TRUE(store_->remove_release("default", release.sandbox_id));
  sweep();
  ASSERT_TRUE(store_->add_release(release));
  sweep();
  EXPECT_EQ(released(), 1u);
}

TEST_F(SweeperTest, ForgetsWhatItSawAtAProviderThatIsGone) {
  stray();
  ASSERT_TRUE(store_->add_release({"sb-gone", "uid-1", "default", "Leave", clock_.wall()}));
  sweep();
  sweep();
  sweeper_->keep_only({"another"});
  ASSERT_TRUE(store_->add_release({"sb-gone", "uid-1", "default", "Leave", clock_.wall()}));
  EXPECT_EQ(sweep().killed, 0u) << "its grace begins anew";
  EXPECT_EQ(released(), 1u) << "its misses are counted anew";
  sweeper_->keep_only({"default"});
  sweep();
  EXPECT_EQ(sweep().killed, 1u);
}

}  // namespace
}  // namespace controller
