#include "executor/subprocess/spill.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>

#include "executor/testing/scratch.h"
#include "libs/aio/loop.h"
#include "libs/aio/testing/run.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

struct Spilling {
  explicit Spilling(std::int64_t bytes_max = 1 << 20)
      : folder(*SpillFolder::open(loop.executor(), place(), bytes_max, background)) {}
  fs::path place() const { return scratch.path() / "spills"; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(place()), fs::directory_iterator()));
  }

  Scratch scratch;
  aio::Loop loop;
  aio::Background background{2};
  std::shared_ptr<SpillFolder> folder;
};

std::string read(const std::optional<std::string>& path) {
  const auto content = base::read_file(path.value_or("/nowhere"));
  return content ? *content : "<none>";
}

aio::Task<> is_shown_when_whole(Spilling& site) {
  const auto spill = site.folder->begin(100);
  co_await spill->add("one ");
  EXPECT_FALSE(spill->path()) << "it is not whole";
  co_await spill->add(std::string("t\0o", 3));
  co_await spill->finish();
  EXPECT_EQ(read(spill->path()), std::string("one t\0o", 7));
  struct stat about{};
  EXPECT_EQ(::stat(spill->path().value_or("").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
  EXPECT_EQ(::stat(site.place().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700u);
  EXPECT_GE(fs::path(*spill->path()).filename().string().size(), 32u) << "nobody guesses it";
  const auto other = site.folder->begin(100);
  co_await other->add("x");
  co_await other->finish();
  EXPECT_NE(other->path(), spill->path());
}
// covers: O3
TEST(Spill, IsShownOnceItIsWhole) { aio::testing::tell(is_shown_when_whole); }

aio::Task<> is_withheld_beyond_its_cap(Spilling& site) {
  const auto just = site.folder->begin(8);
  co_await just->add("12345678");
  co_await just->finish();
  EXPECT_EQ(read(just->path()), "12345678");
  const auto beyond = site.folder->begin(8);
  co_await beyond->add("12345678");
  co_await beyond->add("9");
  co_await beyond->add("10");
  co_await beyond->finish();
  EXPECT_FALSE(beyond->path());
  EXPECT_EQ(site.files(), 1u);
  EXPECT_EQ(site.folder->bytes(), 8);
}
// covers: O3
TEST(Spill, IsWithheldBeyondItsCap) { aio::testing::tell(is_withheld_beyond_its_cap); }

aio::Task<std::shared_ptr<Spill>> whole(SpillFolder& folder, std::size_t bytes) {
  auto spill = folder.begin(1'000);
  co_await spill->add(std::string(bytes, 'x'));
  co_await spill->finish();
  co_return spill;
}

aio::Task<> makes_room(Spilling& site) {
  const auto first = co_await whole(*site.folder, 40);
  const auto second = co_await whole(*site.folder, 40);
  EXPECT_TRUE(first->path());
  const auto third = co_await whole(*site.folder, 40);
  EXPECT_FALSE(first->path()) << "the oldest goes";
  EXPECT_TRUE(second->path());
  EXPECT_TRUE(third->path());
  EXPECT_EQ(site.folder->bytes(), 80);
  const auto too_large = co_await whole(*site.folder, 101);
  EXPECT_FALSE(too_large->path());
  EXPECT_LE(site.folder->bytes(), 100);

  const auto writing = site.folder->begin(1'000);
  co_await writing->add(std::string(90, 'x'));
  const auto another = co_await whole(*site.folder, 20);
  EXPECT_FALSE(another->path()) << "one that is being written is not taken from";
  co_await writing->finish();
  EXPECT_TRUE(writing->path());
  EXPECT_EQ(site.files(), 1u);
}
// covers: O3
TEST(Spill, TheOldestWholeOneMakesRoomInTheSandbox) {
  aio::testing::tell<Spilling>(makes_room, 100);
}

aio::Task<> goes_with_its_owner(Spilling& site) {
  auto spill = co_await whole(*site.folder, 40);
  auto half = site.folder->begin(1'000);
  co_await half->add("half");
  EXPECT_EQ(site.files(), 2u);
  co_await spill->withhold();
  EXPECT_FALSE(spill->path());
  spill.reset();
  half.reset();
  EXPECT_EQ(site.files(), 0u);
  EXPECT_EQ(site.folder->bytes(), 0);
}
// covers: O3
TEST(Spill, GoesWithItsOwner) { aio::testing::tell(goes_with_its_owner); }

aio::Task<> withheld_on_a_full_disk(Spilling& site) {
  const auto spill = site.folder->begin(1 << 20);
  co_await spill->add(std::string(200'000, 'x'));
  co_await spill->add("more");
  co_await spill->finish();
  EXPECT_FALSE(spill->path());
  EXPECT_EQ(site.files(), 0u);
  const auto small = co_await whole(*site.folder, 40);
  EXPECT_TRUE(small->path()) << "there is room again";
}
// covers: O3
TEST(Spill, IsWithheldWhenTheDiskIsFull) {
  Spilling site;
  if (::mount("tmpfs", site.place().c_str(), "tmpfs", 0, "size=64k,mode=700") != 0)
    GTEST_SKIP() << "no small disk can be mounted here";
  aio::testing::run(site.loop, withheld_on_a_full_disk(site));
  ::umount2(site.place().c_str(), MNT_DETACH);
}

// covers: O3
TEST(Spill, AFolderBeginsEmptyAndOurs) {
  Scratch scratch;
  aio::Loop loop;
  aio::Background background(1);
  const auto open = [&](const fs::path& path) {
    return SpillFolder::open(loop.executor(), path, 100, background).ok();
  };
  const fs::path place = scratch.path() / "spills";
  ASSERT_TRUE(open(place));
  scratch.write("spills/left", "of an earlier life");
  ASSERT_TRUE(open(place));
  EXPECT_FALSE(fs::exists(place / "left"));
  ::chmod(place.c_str(), 0755);
  EXPECT_FALSE(open(place)) << "others may read it";
  fs::create_directory(scratch.path() / "elsewhere");
  fs::create_directory_symlink("elsewhere", scratch.path() / "link");
  EXPECT_FALSE(open(scratch.path() / "link"));
}

}  // namespace
}  // namespace executor
