#include "libs/archives/unpack.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "libs/archives/testing/tree.h"
#include "libs/base/testing/temporary_folder.h"

namespace archives {
namespace {

using testing::Came;
using testing::compressed;
using testing::described;
using ::testing::ElementsAre;
using testing::tar_part;
using testing::unpacked;
namespace fs = std::filesystem;

std::string end() { return std::string(1024, '\0'); }

class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    fs::create_directory(into);
    std::ofstream(outside) << "safe";
    before = all_but_into();
  }
  // Nothing outside of the folder may have changed, whatever happened within.
  ~Hostile() override { EXPECT_EQ(all_but_into(), before); }
  std::map<std::string, std::string> all_but_into() const {
    auto all = described(folder.path());
    std::erase_if(all, [](const auto& one) { return one.first.starts_with("into"); });
    all.erase(".");
    return all;
  }
  Result<Came> take(const std::string& parts, const UnpackOptions& options = {}) const {
    return unpacked(compressed(parts + end()), into, options);
  }
  std::string read(const char* name) const {
    std::ifstream file(into / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  base::TemporaryFolder folder;
  fs::path into = folder / "into", outside = folder / "outside";
  std::map<std::string, std::string> before;
};

TEST_F(Hostile, PathsLeadNowhereElse) {
  const fs::path absolute = folder / "planted";
  for (const std::string& path :
       {std::string("../planted"), std::string("a/../../planted"), absolute.string()})
    EXPECT_EQ(take(tar_part(path, '0', "x")).error().fault, Fault::kUnfit) << path;
  EXPECT_EQ(take(tar_part("../planted/", '5')).error().fault, Fault::kUnfit);
}

// covers: R7
TEST_F(Hostile, LinksAreNotFollowed) {
  const std::string link = tar_part("way", '2', "", folder.path().string());
  EXPECT_EQ(take(link + tar_part("way/planted", '0', "x")).error().fault, Fault::kExists);
  EXPECT_EQ(take(link + tar_part("way/", '5')).error().fault, Fault::kExists);
  EXPECT_EQ(take(link + tar_part("way/deeper/", '5')).error().fault, Fault::kExists);
  // In steps, each of which looks harmless.
  EXPECT_EQ(take(tar_part("a/", '5') + tar_part("a/up", '2', "", "..") +
                 tar_part("a/up/up", '2', "", "..") + tar_part("a/up/up/planted", '0', "x"))
                .error()
                .fault,
            Fault::kExists);
}

TEST_F(Hostile, FilesTakeALinksPlaceAndNotItsTargets) {
  const auto done = take(tar_part("file", '2', "", outside.string()) + tar_part("file", '0', "x"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(fs::is_symlink(into / "file"));
  EXPECT_EQ(read("file"), "x");
}

// covers: R7
TEST_F(Hostile, LinksThatWereThereBeforeAreNotFollowedEither) {
  fs::create_symlink(folder.path(), into / "way");
  EXPECT_EQ(take(tar_part("way/planted", '0', "x")).error().fault, Fault::kExists);
  fs::create_symlink(outside, into / "file");
  ASSERT_TRUE(take(tar_part("file", '0', "x")));
  EXPECT_EQ(read("file"), "x");
}

TEST_F(Hostile, HardLinksStayWithin) {
  EXPECT_EQ(take(tar_part("stolen", '1', "", "../outside")).error().fault, Fault::kUnfit);
  EXPECT_EQ(take(tar_part("stolen", '1', "", outside.string())).error().fault, Fault::kUnfit);
  const auto through = take(tar_part("way", '2', "", folder.path().string()) +
                            tar_part("stolen", '1', "", "way/outside"));
  ASSERT_TRUE(through) << through.error().message;
  EXPECT_THAT(through->report.told, ElementsAre(Remarked{"stolen", Remark::kLinkMissing}));
  EXPECT_FALSE(fs::exists(into / "stolen"));
  // To the link itself, and then through its name.
  const auto twice = take(tar_part("one", '2', "", outside.string()) +
                          tar_part("two", '1', "", "one") + tar_part("two", '0', "x"));
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_EQ(read("two"), "x");
}

TEST_F(Hostile, WhatHasTwoNamesIsReplacedUnderOne) {
  ASSERT_TRUE(take(tar_part("one", '0', "first") + tar_part("two", '1', "", "one") +
                   tar_part("two", '0', "second")));
  EXPECT_EQ(read("one"), "first");
  EXPECT_EQ(read("two"), "second");
}

TEST_F(Hostile, DevicesAndPipesAreLeftOut) {
  const auto done = take(tar_part("tty", '3') + tar_part("disk", '4') + tar_part("pipe", '6') +
                         tar_part("file", '0', "x"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->report.remarks, 3u);
  EXPECT_EQ(described(into).size(), 2u) << "itself and the file";
}

TEST_F(Hostile, SetIdBitsAreDroppedUnlessAskedFor) {
  struct stat found{};
  ASSERT_TRUE(take(tar_part("program", '0', "x")));
  ASSERT_EQ(::stat((into / "program").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0644u);
  ASSERT_TRUE(take(tar_part("program", '0', "x"), {.set_ids = true}));
  ASSERT_EQ(::stat((into / "program").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 06644u);
}

TEST_F(Hostile, TheSameNameTwiceIsTheLastOne) {
  ASSERT_TRUE(take(tar_part("a", '0', "first") + tar_part("a", '0', "second")));
  EXPECT_EQ(read("a"), "second");
  EXPECT_EQ(take(tar_part("b/", '5') + tar_part("b", '0', "x")).error().fault, Fault::kExists);
  EXPECT_EQ(take(tar_part("c", '0', "x") + tar_part("c/", '5')).error().fault, Fault::kExists);
}

TEST_F(Hostile, AbsurdSizesAreRefusedBeforeAnythingIsWritten) {
  // 8 GiB less a byte, and in base 256 a number beyond all files.
  EXPECT_EQ(take(tar_part("big", '0', "", "", "77777777777"), {.bytes_max = 1 << 20}).error().fault,
            Fault::kTooLarge);
  std::string huge = "\x80";
  huge += std::string("\0\0\0\x7f\xff\xff\xff\xff\xff\xff", 10);
  const auto refused = take(tar_part("huge", '0', "", "", huge));
  ASSERT_FALSE(refused);
  EXPECT_THAT(described(into).size(), 1u);
}

TEST_F(Hostile, ASparseFileMayNotPretendToBeLarger) {
  const std::string header =
      "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
      "37 GNU.sparse.realsize=1099511627776\n";
  std::string map = "1\n0\n1\n";
  map.resize(512, '\0');
  const auto refused = take(tar_part("PaxHeaders/x", 'x', header) + tar_part("x", '0', map + "y"),
                            {.bytes_max = 1 << 30});
  EXPECT_EQ(refused.error().fault, Fault::kTooLarge) << refused.error().message;
}

TEST_F(Hostile, AHeaderMayNotTakeAllMemory) {
  // A list of holes that goes on and on.
  std::string map = "900000\n";
  for (int i = 0; i < 900'000; ++i) map += "0\n0\n";
  const std::string header =
      "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
      "26 GNU.sparse.realsize=10\n";
  const auto refused = take(tar_part("PaxHeaders/x", 'x', header) + tar_part("x", '0', map));
  EXPECT_EQ(refused.error().fault, Fault::kTooLarge) << refused.error().message;
  // Names in front of names.
  std::string names;
  for (int i = 0; i < 5000; ++i) names += tar_part("././@LongLink", 'L', std::string(600, 'n'));
  EXPECT_FALSE(take(names + tar_part("x", '0', "y")));
}

TEST_F(Hostile, ABombIsCutOffAtTheLimit) {
  // 256 MiB of zeros in some KiB: as a file, and behind the last entry.
  const std::string zeros(256 << 20, '\0');
  const auto file =
      unpacked(compressed(tar_part("zeros", '0', zeros)), into, {.bytes_max = 1 << 20});
  EXPECT_EQ(file.error().fault, Fault::kTooLarge);
  const auto padding = unpacked(compressed(tar_part("a", '0', "x") + end() + zeros), into,
                                {.entries_max = 1000, .bytes_max = 1 << 20});
  EXPECT_EQ(padding.error().fault, Fault::kTooLarge);
}

// covers: X4
TEST_F(Hostile, WhatIsCutOffIsNotWhole) {
  const std::string parts = tar_part("a", '0', std::string(5000, 'x')) + tar_part("b/", '5');
  const std::string whole = compressed(parts + end());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7)
    EXPECT_EQ(unpacked(whole.substr(0, bytes), into).error().fault, Fault::kUnfit) << bytes;
  // The compressed stream is whole, but what is in it is not.
  for (const std::size_t bytes : {100u, 512u, 3000u})
    EXPECT_EQ(unpacked(compressed(parts.substr(0, bytes)), into).error().fault, Fault::kUnfit)
        << bytes;
  EXPECT_EQ(unpacked(compressed("this is no archive"), into).error().fault, Fault::kUnfit);
}

// covers: A5
TEST_F(Hostile, NoFileIsSeenHalf) {
  ASSERT_TRUE(take(tar_part("a", '0', "old")));
  const std::string cut = tar_part("a", '0', std::string(5000, 'x')).substr(0, 3000);
  ASSERT_FALSE(unpacked(compressed(cut), into));
  EXPECT_EQ(read("a"), "old");
}

TEST_F(Hostile, OutwardLinksCanBeLeftOut) {
  const auto done =
      take(tar_part("in", '2', "", "a/../b") + tar_part("out", '2', "", "../outside") +
               tar_part("far", '2', "", "/etc"),
           {.outward_links = false});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(done->report.told, ElementsAre(Remarked{"out", Remark::kLinkOutward},
                                             Remarked{"far", Remark::kLinkOutward}));
  EXPECT_TRUE(fs::is_symlink(into / "in"));
}

TEST_F(Hostile, EmptyArchivesAreFine) {
  ASSERT_TRUE(take(""));
  EXPECT_EQ(unpacked("", into).error().fault, Fault::kUnfit);
}

TEST_F(Hostile, FoldersThatNobodyMayWriteAreFilledFirst) {
  std::string folder = tar_part("ro/", '5');
  folder.replace(100, 7, "0000555");
  unsigned sum = 0;
  folder.replace(148, 8, "        ");
  for (const char byte : folder) sum += static_cast<unsigned char>(byte);
  std::array<char, 8> octal{};
  std::snprintf(octal.data(), octal.size(), "%06o", sum);
  folder.replace(148, 7, octal.data(), 7);
  ASSERT_TRUE(take(folder + tar_part("ro/a", '0', "x") + tar_part("ro/b", '0', "y")));
  struct stat found{};
  ASSERT_EQ(::stat((into / "ro").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0555u);
  EXPECT_EQ(found.st_mtim.tv_sec, 1'000'000'000 + 0) << "07346545000 in octal";
}

}  // namespace
}  // namespace archives
