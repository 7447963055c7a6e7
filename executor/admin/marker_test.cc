#include "executor/admin/marker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

const wire::Identity kFirst{"uid-1", 2, 1, 3}, kSecond{"uid-1", 2, 1, 4}, kThird{"uid-1", 2, 2, 5};

class MarkerFile : public testing::Test {
 protected:
  Marker open() {
    auto marker = Marker::open(path_, {.sync =
                                           [this](int fd) {
                                             syncs_.push_back("whole");
                                             return ::fsync(fd);
                                           },
                                       .sync_data =
                                           [this](int fd) {
                                             syncs_.push_back("data");
                                             return ::fdatasync(fd);
                                           }});
    if (!marker) throw std::runtime_error(marker.error().message);
    return *std::move(marker);
  }
  std::optional<wire::Identity> reread() {
    const auto read = open().read();
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : std::nullopt;
  }
  // Writes bytes into the file as a power loss or a user may leave it.
  void spoil(off_t at, const std::string& bytes) const {
    const base::Fd file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), at),
              static_cast<ssize_t>(bytes.size()));
  }

  const Scratch scratch_;
  const std::string path_ = scratch_ / "marker";
  std::vector<std::string> syncs_;
};

TEST_F(MarkerFile, SaysNothingUntilItWasWritten) {
  EXPECT_EQ(reread(), std::nullopt);
  EXPECT_EQ(reread(), std::nullopt);
}

TEST_F(MarkerFile, SaysWhatWasWrittenLast) {
  for (const auto& identity : {kFirst, kSecond, kThird}) {
    ASSERT_TRUE(open().write(identity));
    EXPECT_EQ(reread(), identity);
  }
  EXPECT_EQ(fs::file_size(path_), 2 * Marker::kSlotBytes);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(MarkerFile, AWriteWaitsForOneSyncOfItsData) {
  Marker marker = open();
  ASSERT_TRUE(marker.settle());
  syncs_.clear();
  ASSERT_TRUE(marker.write(kFirst));
  ASSERT_TRUE(marker.write(kSecond));
  EXPECT_EQ(syncs_, (std::vector<std::string>{"data", "data"}));
}

TEST_F(MarkerFile, AWriteBeforeItHasSettledBringsItsNameToTheDiskToo) {
  Marker marker = open();
  ASSERT_TRUE(marker.write(kFirst));
  EXPECT_EQ(syncs_, (std::vector<std::string>{"whole", "whole"})) << "the file and its folder";
  syncs_.clear();
  ASSERT_TRUE(marker.write(kSecond));
  EXPECT_EQ(syncs_, (std::vector<std::string>{"data"}));
}

TEST_F(MarkerFile, AWriteThatTheDiskRefusedIsNone) {
  bool full = true;
  auto marker = Marker::open(path_, {.sync = [&](int) { return full ? -1 : 0; },
                                     .sync_data = [&](int) { return full ? -1 : 0; }});
  ASSERT_TRUE(marker);
  EXPECT_FALSE(marker->write(kFirst));
  full = false;
  EXPECT_TRUE(marker->write(kFirst));
  full = true;
  EXPECT_FALSE(marker->write(kSecond));
}

TEST_F(MarkerFile, AWriteThatWasCutOffLeavesTheOneBefore) {
  // The third takes the place of the first, of which a rest is left.
  const auto slot = to_slot({.sequence = 3, .identity = kThird});
  ASSERT_TRUE(slot);
  for (const std::size_t kept :
       {std::size_t{0}, std::size_t{1}, std::size_t{70}, slot->find('\n')}) {
    fs::remove(path_);
    Marker marker = open();
    ASSERT_TRUE(marker.write(kFirst));
    ASSERT_TRUE(marker.write(kSecond));
    spoil(Marker::kSlotBytes, slot->substr(0, kept));
    spoil(static_cast<off_t>(Marker::kSlotBytes + kept), std::string(300, 'x'));
    EXPECT_EQ(reread(), kSecond) << kept;
    ASSERT_TRUE(open().write(kThird));
    EXPECT_EQ(reread(), kThird) << kept;
  }
}

TEST_F(MarkerFile, TellsADamagedOneFromNone) {
  ASSERT_TRUE(open().write(kFirst));
  spoil(0, std::string(2 * Marker::kSlotBytes, 'x'));
  EXPECT_EQ(open().read().error().code, base::ErrorCode::kInvalid);
  ASSERT_TRUE(open().write(kSecond));
  EXPECT_EQ(reread(), kSecond);
}

TEST_F(MarkerFile, IsMadeAnewWhenSomebodyHasRemovedOrReplacedIt) {
  Marker marker = open();
  ASSERT_TRUE(marker.write(kFirst));
  fs::remove(path_);
  ASSERT_TRUE(marker.write(kSecond));
  EXPECT_EQ(reread(), kSecond);
  fs::remove(path_);
  scratch_.write("marker", "half a mark");
  ASSERT_TRUE(marker.write(kThird));
  EXPECT_EQ(reread(), kThird);
}

TEST_F(MarkerFile, IsNeitherALinkNorAPipe) {
  scratch_.write("elsewhere", "kept");
  fs::create_symlink(scratch_ / "elsewhere", path_);
  EXPECT_FALSE(Marker::open(path_));
  EXPECT_EQ(scratch_.read("elsewhere"), "kept");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(Marker::open(path_));
}

TEST_F(MarkerFile, HasRoomForSoMuchAndSaysSo) {
  EXPECT_TRUE(open().write({std::string(3'000, 'u'), 1, 1, 1}));
  EXPECT_EQ(open().write({std::string(5'000, 'u'), 1, 1, 2}).error().code,
            base::ErrorCode::kInvalid);
  EXPECT_EQ(reread()->run, 1);
}

}  // namespace
}  // namespace executor
