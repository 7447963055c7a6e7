#include "executor/filesystem/at_hand.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "executor/filesystem/stat.h"
#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"

namespace executor {
namespace {

// Of a tree whose filesystem is one of those that are trusted to be in memory.
class Glance : public testing::Test {
 protected:
  void SetUp() override {
    if (!at_hand_.stat(tree_.at("."))) GTEST_SKIP() << "nothing of " << tree_.path() << " is";
  }
  std::string version(std::string_view name) const {
    const auto info = at_hand_.stat(tree_.at(name));
    return info ? info->version : "none";
  }
  std::string content(std::string_view name, const ReadRequest& request = {}) const {
    const auto opened = at_hand_.open(tree_.at(name), request, 1000);
    return opened ? opened->first : "none";
  }

  Tree tree_;
  AtHand at_hand_{tree_.path().string()};
};

// covers: R4
TEST_F(Glance, SeesWhatALookSees) {
  tree_.write("file", "content");
  tree_.make_folder("folder");
  for (const char* name : {"file", "folder", "folder/../file", "./folder/"})
    EXPECT_EQ(version(name), (*stat_target(tree_.at(name)))->version) << name;
  EXPECT_EQ(at_hand_.stat(FileAddress::of_target(tree_ / "file"))->version, version("file"));
  tree_.write("file", "another");
  EXPECT_EQ(version("file"), (*stat_target(tree_.at("file")))->version);
}

// covers: R4
TEST_F(Glance, LeavesWhatIsNotPlainToALook) {
  tree_.write("file", "content");
  tree_.make_folder("folder");
  tree_.write("folder/file", "content");
  tree_.link("link", "file");
  tree_.link("way", "folder");
  for (const char* name : {"link", "way/file", "none", "file/below", " "})
    EXPECT_EQ(version(name), "none") << name;
  EXPECT_FALSE(at_hand_.stat(FileAddress::of_target(tree_ / "folder/../file")));
  EXPECT_FALSE(at_hand_.open(tree_.at("folder"), {}, 1000));
  EXPECT_FALSE(at_hand_.open(tree_.at("file"), {.bytes_max = 3}, 1000));
}

TEST_F(Glance, LeavesOtherFilesystems) {
  EXPECT_FALSE(at_hand_.stat(FileAddress::of_path("/proc/self/status", "/")));
  EXPECT_FALSE(AtHand("/proc/self").stat(FileAddress::of_path("/proc/self/status", "/")));
  EXPECT_FALSE(AtHand("/no/such/folder").stat(tree_.at(".")));
  EXPECT_FALSE(AtHand().stat(tree_.at(".")));
}

TEST_F(Glance, KeepsToWhatGoesThroughNoLink) {
  tree_.write("file", "content");
  const Without no_links(Mechanism::kNoLinks);
  EXPECT_EQ(version("file"), "none");
}

// covers: R1 R2
TEST_F(Glance, ReadsWhatIsInMemory) {
  tree_.write("file", "content");
  const base::Fd file(::open((tree_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  if (content("file") == "none") GTEST_SKIP() << "this filesystem does not say what is in memory";
  EXPECT_EQ(content("file"), "content");
  EXPECT_EQ(content("file", {.from = 3, .length = 2}), "te");
  EXPECT_EQ(content("file", {.as = ReadRequest::As::kText}), "content");
  // On the disk alone.
  ASSERT_EQ(::fsync(file.get()), 0);
  ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_EQ(content("file"), "none");
  EXPECT_NE(version("file"), "none");
}

TEST_F(Glance, GoesOnWithALongFileAsItBegan) {
  const std::string all(100'000, 'x');
  tree_.write("file", all);
  const auto opened = at_hand_.open(tree_.at("file"), {}, 4096);
  if (!opened) GTEST_SKIP() << "this filesystem does not say what is in memory";
  std::string content = opened->first;
  while (!opened->reader->at_end()) content += *opened->reader->next(4096, {});
  EXPECT_EQ(content, all);
}

}  // namespace
}  // namespace executor
