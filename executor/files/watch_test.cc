#include "executor/files/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "executor/files/folders.h"
#include "executor/files/staging.h"
#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using enum Change;

aio::Task<int> collect(aio::Loop& loop, std::shared_ptr<Watch> watch, WatchEvent last,
                       std::vector<WatchEvent>& events) {
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(Watch::run(watch));
  const auto deadline = base::SystemClock().now() + base::Seconds(60);
  while (base::SystemClock().now() < deadline && !std::count(events.begin(), events.end(), last)) {
    co_await aio::race(watch->wait(), aio::sleep_for(base::Milliseconds(100)));
    for (WatchEvent& event : watch->take()) events.push_back(std::move(event));
  }
  watch->stop();
  co_await tasks.wait();
  co_return 0;
}

// What a watch tells of `change`, up to the event `last`.
std::vector<WatchEvent> changes(const Scratch& scratch, bool recursive, WatchEvent last,
                                const std::function<void()>& change) {
  aio::Loop loop;
  auto folders = Watch::Folders::find(scratch.path(), recursive, true);
  EXPECT_TRUE(folders.ok()) << folders.error().message;
  const auto watch = std::make_shared<Watch>(loop.executor(), *std::move(folders));
  change();
  std::vector<WatchEvent> events;
  loop.run(collect(loop, watch, last, events));
  return events;
}

TEST(Watch, TellsOfFilesInAFolder) {
  Scratch scratch;
  scratch.write("old", "");
  const auto events = changes(scratch, false, {"new", kRenamed}, [&] {
    std::ofstream(scratch / "new") << "x";
    fs::permissions(scratch / "new", fs::perms::owner_all);
    fs::remove(scratch / "old");
    fs::rename(scratch / "new", scratch / "other");
  });
  EXPECT_EQ(events, (std::vector<WatchEvent>{{"new", kCreated},
                                             {"new", kWritten},
                                             {"new", kMode},
                                             {"old", kRemoved},
                                             {"new", kRenamed},
                                             {"other", kCreated}}));
}

TEST(Watch, TellsOfAnUploadAsIfItWereWrittenInPlace) {
  Scratch scratch;
  const Users users("/etc", false);
  const auto upload = [&] {
    auto staged = StagedFile::begin(scratch / "file", users, users.current());
    ASSERT_TRUE(staged->write("x").ok());
    ASSERT_TRUE(staged->commit({}).ok());
  };
  EXPECT_EQ(changes(scratch, false, {"file", kWritten}, upload),
            (std::vector<WatchEvent>{{"file", kCreated}, {"file", kMode}, {"file", kWritten}}));
  EXPECT_EQ(changes(scratch, false, {"file", kWritten}, upload),
            (std::vector<WatchEvent>{{"file", kMode}, {"file", kWritten}}));
}

TEST(Watch, TellsOfAHarnesssWriteAsOfAnyRename) {
  Scratch scratch;
  scratch.write("file", "old");
  const std::string staged = scratch / (std::string(kPrivateStagingPrefix) + "1");
  EXPECT_EQ(changes(scratch, false, {"file", kCreated},
                    [&] {
                      std::ofstream(staged) << "new";
                      fs::rename(staged, scratch / "file");
                    }),
            (std::vector<WatchEvent>{{"file", kCreated}}));
}

TEST(Watch, FollowsNewFoldersWhenRecursive) {
  Scratch scratch;
  fs::create_directories(scratch.path() / "a/b");
  const auto events = changes(scratch, true, {"c/d/file", kCreated}, [&] {
    std::ofstream(scratch / "a/b/file") << "x";
    fs::create_directories(scratch.path() / "c/d");
    std::ofstream(scratch / "c/d/file") << "x";
  });
  EXPECT_TRUE(std::count(events.begin(), events.end(), WatchEvent{"a/b/file", kCreated}));
  EXPECT_TRUE(std::count(events.begin(), events.end(), WatchEvent{"c", kCreated}));
  EXPECT_TRUE(std::count(events.begin(), events.end(), WatchEvent{"c/d", kCreated}));
}

aio::Task<int> overflow(aio::Loop& loop, std::shared_ptr<Watch> watch, std::size_t& lost) {
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(Watch::run(watch));
  const auto deadline = base::SystemClock().now() + base::Seconds(60);
  while (base::SystemClock().now() < deadline && lost == 0) {
    co_await aio::sleep_for(base::Milliseconds(10));
    lost = watch->take_lost();
  }
  watch->stop();
  co_await tasks.wait();
  co_return 0;
}

TEST(Watch, HoldsABoundedNumberOfEventsAndSaysThatSomeAreLost) {
  Scratch scratch;
  aio::Loop loop;
  auto folders = Watch::Folders::find(scratch.path(), false, true);
  ASSERT_TRUE(folders.ok());
  const auto watch = std::make_shared<Watch>(loop.executor(), *std::move(folders));
  for (std::size_t i = 0; i < Watch::kEventsMax / 2 + 10; ++i) {
    std::ofstream(scratch / "file") << "x";
    fs::remove(scratch / "file");
  }
  std::size_t lost = 0;
  loop.run(overflow(loop, watch, lost));
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(watch->take().size(), Watch::kEventsMax);
}

TEST(Watch, RefusesWhatIsNoFolder) {
  Scratch scratch;
  scratch.write("file", "");
  const auto why = [&](std::string_view name) {
    return Watch::Folders::find(scratch / name, false, true).error().error_number;
  };
  EXPECT_EQ(why("none"), ENOENT);
  EXPECT_EQ(why("file"), ENOTDIR);
}

}  // namespace
}  // namespace executor
