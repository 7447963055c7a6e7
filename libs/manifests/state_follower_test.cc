#include "libs/manifests/state_follower.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using api::Key;

const Key kOne{"default", "one"}, kFar{"far", "one"};

std::string sandbox_yaml(const Key& key, const std::string& desired = "Running") {
  return "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: " + key.name +
         "\n  namespace: " + key.space +
         "\nspec:\n  template:\n    id: base\n  desiredState: " + desired + "\n";
}

class StateFollowerTest : public ::testing::Test {
 protected:
  StateFollowerTest() {
    fs::create_directory(folder_ / "manifests");
    open();
  }
  void open() {
    auto opened = FileStore::open({.manifests = folder_ / "manifests",
                                   .state = folder_ / "state",
                                   .removal_hold = base::Milliseconds(20)},
                                  clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    store_->start();
  }
  void declare(const Key& key, const std::string& desired = "Running") {
    ASSERT_TRUE(base::write_file_atomically(folder_ / "manifests" / (key.space + ".yaml"),
                                            sandbox_yaml(key, desired), 0644));
  }
  void take(const StateFollower::News& news) {
    std::lock_guard lock(mutex_);
    ++told_;
    held_ = news.held;
    for (const auto& [key, sandbox] : news.changed) {
      if (sandbox) {
        seen_.insert_or_assign(key, sandbox);
      } else {
        seen_.erase(key);
      }
    }
    changed_.notify_all();
  }
  // Waits for the follower's own word.
  bool becomes(const std::function<bool()>& wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), wanted);
  }
  bool is_seen(const Key& key, api::DesiredState desired) const {
    const auto found = seen_.find(key);
    return found != seen_.end() && found->second->spec.desired_state == desired;
  }

  const base::TemporaryFolder folder_;
  base::SystemClock clock_;
  std::unique_ptr<FileStore> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<const api::Sandbox>> seen_;
  bool held_ = false;
  int told_ = 0;
};

TEST_F(StateFollowerTest, TellsWhatIsThereAndWhatBecomesOfIt) {
  declare(kOne);
  const StateFollower follower(folder_ / "state", [this](const auto& news) { take(news); });
  EXPECT_TRUE(becomes([&] { return held_ && is_seen(kOne, api::DesiredState::kRunning); }));
  declare(kFar);  // In a folder that was not there before.
  EXPECT_TRUE(becomes([&] { return is_seen(kFar, api::DesiredState::kRunning); }));
  declare(kOne, "Paused");
  EXPECT_TRUE(becomes([&] { return is_seen(kOne, api::DesiredState::kPaused); }));
  fs::remove(folder_ / "manifests" / "far.yaml");
  EXPECT_TRUE(becomes([&] { return !seen_.contains(kFar); }));
  EXPECT_TRUE(seen_.contains(kOne));
}

TEST_F(StateFollowerTest, SaysWhenNobodyIsAtWorkThereAndForgetsNothing) {
  declare(kOne);
  const StateFollower follower(folder_ / "state", [this](const auto& news) { take(news); });
  EXPECT_TRUE(becomes([&] { return held_ && seen_.contains(kOne); }));
  ASSERT_TRUE(store_->close());
  store_.reset();
  EXPECT_TRUE(becomes([&] { return !held_; }));
  EXPECT_TRUE(seen_.contains(kOne));
  open();
  EXPECT_TRUE(becomes([&] { return held_; }));
}

TEST_F(StateFollowerTest, TakesAFolderThatIsGoneForSilence) {
  declare(kOne);
  const StateFollower follower(folder_ / "state", [this](const auto& news) { take(news); });
  EXPECT_TRUE(becomes([&] { return held_ && seen_.contains(kOne); }));
  fs::rename(folder_ / "state", folder_ / "aside");
  EXPECT_TRUE(becomes([&] { return !held_; }));
  EXPECT_TRUE(seen_.contains(kOne));
  fs::rename(folder_ / "aside", folder_ / "state");
  EXPECT_TRUE(becomes([&] { return held_; }));
  EXPECT_TRUE(seen_.contains(kOne));
}

TEST_F(StateFollowerTest, WaitsForAFolderThatIsNotThereYet) {
  const fs::path later = folder_ / "later";
  const StateFollower follower(later, [this](const auto& news) { take(news); });
  fs::create_directory(folder_ / "others");
  auto other = FileStore::open({.manifests = folder_ / "others", .state = later}, clock_);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(becomes([&] { return held_; }));
}

}  // namespace
}  // namespace manifests
