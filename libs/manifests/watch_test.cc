#include <gmock/gmock.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/requests.h"
#include "libs/manifests/watcher.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using api::Key;
using enum api::ResourceStore::Durability;

std::string sandbox_yaml(const std::string& name) {
  return "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: " + name +
         "\nspec:\n  template:\n    id: base\n";
}

class Watch : public ::testing::Test {
 protected:
  Watch() {
    options_.manifests = folder_.path() / "manifests";
    options_.state = folder_.path() / "state";
    options_.removal_hold = base::Milliseconds(50);
    fs::create_directory(options_.manifests);
    auto opened = FileStore::open(options_, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    store_->on_sandbox_change([this](const Key&) {
      std::lock_guard lock(mutex_);
      ++changes_;
      changed_.notify_all();
    });
  }

  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::write_file_atomically(options_.manifests / name, text, 0644));
  }
  // Waits for the store's own word of a change, then looks.
  bool becomes(const std::function<bool()>& wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), wanted);
  }

  base::TemporaryFolder folder_;
  FileStoreOptions options_;
  base::SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
  std::unique_ptr<FileStore> store_;
};

TEST_F(Watch, SeesFilesComeAndGo) {
  const Key key{"default", "a"};
  store_->start();
  write("a.yaml", sandbox_yaml("a"));
  EXPECT_TRUE(becomes([&] { return store_->find_sandbox(key) != nullptr; }));
  fs::remove(options_.manifests / "a.yaml");
  EXPECT_TRUE(becomes([&] { return store_->find_sandbox(key) == nullptr; }));
}

TEST_F(Watch, TakesRequestsAtOnce) {
  const Key key{"default", "a"};
  write("a.yaml", sandbox_yaml("a"));
  store_->start();
  ASSERT_TRUE(becomes([&] { return store_->find_sandbox(key) != nullptr; }));
  ASSERT_TRUE(write_request(options_.state, {Request::Kind::kDelete, key}));
  EXPECT_TRUE(becomes([&] { return store_->find_sandbox(key) == nullptr; }));
}

TEST_F(Watch, MakesAnObjectAnewAsSoonAsTheOldOneIsGone) {
  const Key key{"default", "a"};
  write("a.yaml", sandbox_yaml("a"));
  store_->start();
  ASSERT_TRUE(becomes([&] { return store_->find_sandbox(key) != nullptr; }));
  const std::string before = store_->find_sandbox(key)->metadata.uid;
  ASSERT_TRUE(store_->update_metadata(key, {before}, {}, {"held"}));
  fs::remove(options_.manifests / "a.yaml");
  ASSERT_TRUE(becomes([&] { return store_->find_sandbox(key)->deleting(); }));
  write("a.yaml", sandbox_yaml("a"));
  ASSERT_TRUE(store_->update_metadata(key, {before}, {}, {}));
  EXPECT_TRUE(becomes([&] {
    const auto found = store_->find_sandbox(key);
    return found && found->metadata.uid != before;
  }));
}

TEST_F(Watch, TakesWritesOfManyThreadsBesideTheScan) {
  constexpr int kThreads = 4, kWrites = 25;
  for (int index = 0; index < kThreads; ++index)
    write("s" + std::to_string(index) + ".yaml", sandbox_yaml("s" + std::to_string(index)));
  store_->start();
  ASSERT_TRUE(becomes([&] { return store_->sandboxes().size() == kThreads; }));
  std::vector<std::jthread> threads;
  for (int index = 0; index < kThreads; ++index)
    threads.emplace_back([this, index] {
      const Key key{"default", "s" + std::to_string(index)};
      const std::string uid = store_->find_sandbox(key)->metadata.uid;
      for (int count = 1; count <= kWrites; ++count) {
        api::SandboxStatus status;
        status.run = count;
        EXPECT_TRUE(store_->update_status(key, {uid}, status, kNow));
        store_->record_event(*store_->find_sandbox(key), {"Normal", "Ran", "Run", ""});
      }
    });
  threads.clear();
  for (const auto& sandbox : store_->sandboxes()) EXPECT_EQ(sandbox->status.run, kWrites);
  const auto events = StateReader(options_.state).events();
  ASSERT_TRUE(events);
  std::int64_t counted = 0;
  for (const auto& event : *events) counted += event.count;
  EXPECT_EQ(counted, kThreads * kWrites);
}

// Looks are counted, and held until the test lets them end.
class Looks {
 public:
  base::Milliseconds look() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ >= begun_; });
    return base::Milliseconds(60'000);
  }
  void allow(int count) {
    std::lock_guard lock(mutex_);
    allowed_ = count;
    changed_.notify_all();
  }
  bool reach(int count, base::Milliseconds within = base::Milliseconds(30'000)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return begun_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0, allowed_ = 0;
};

TEST(Watcher, TakesABurstInOneLook) {
  base::TemporaryFolder folder;
  Looks looks;
  Watcher watcher({folder.path()}, [&] { return looks.look(); });
  watcher.start();
  ASSERT_TRUE(looks.reach(1));
  for (int index = 0; index < 100; ++index)
    ASSERT_TRUE(
        base::write_file_atomically(folder.path() / (std::to_string(index) + ".yaml"), "", 0644));
  looks.allow(1);
  ASSERT_TRUE(looks.reach(2));
  looks.allow(1'000);
  EXPECT_FALSE(looks.reach(3, base::Milliseconds(100)));
}

TEST(Watcher, LooksWhenAFileIsWrittenInItsPlace) {
  base::TemporaryFolder folder;
  Looks looks;
  looks.allow(1'000);
  Watcher watcher({folder.path()}, [&] { return looks.look(); });
  watcher.start();
  ASSERT_TRUE(looks.reach(1));
  std::ofstream(folder.path() / "a.yaml") << "text";
  EXPECT_TRUE(looks.reach(2));
}

}  // namespace
}  // namespace manifests
