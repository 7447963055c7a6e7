#include "local_e2b/box/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libs/base/crypto.h"
#include "libs/base/fd.h"
#include "libs/base/files.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;

class RemoveTree : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs::create_directories(tree_)); }
  void TearDown() override { EXPECT_TRUE(remove_tree(place_).ok()); }

  const fs::path place_ = fs::temp_directory_path() / ("remove-tree-" + base::random_hex(6));
  const fs::path tree_ = place_ / "tree";
};

TEST_F(RemoveTree, IsDoneWhenNothingIsThere) { EXPECT_TRUE(remove_tree(place_ / "absent").ok()); }

TEST_F(RemoveTree, FollowsNoLink) {
  const fs::path outside = place_ / "outside";
  fs::create_directory(outside);
  ASSERT_TRUE(base::write_file_atomically(outside / "keep", "kept", 0644).ok());
  fs::create_directory_symlink(outside, tree_ / "link");
  fs::create_symlink(outside / "keep", tree_ / "file-link");
  EXPECT_TRUE(remove_tree(tree_).ok());
  EXPECT_FALSE(fs::exists(tree_));
  EXPECT_TRUE(fs::exists(outside / "keep"));

  fs::create_directory_symlink(outside, tree_);
  EXPECT_FALSE(remove_tree(tree_).ok()) << "the folder itself may not be a link either";
  EXPECT_TRUE(fs::exists(outside / "keep"));
}

TEST_F(RemoveTree, IsNotStoppedByDepth) {
  // Deeper than any path may be long, made from the inside.
  base::Fd at(::open(tree_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name(60, 'd');
  for (int depth = 0; depth < 200; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    ASSERT_EQ(::mkdirat(at.get(), ".deep-0", 0700), 0);
    base::Fd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(next);
    at = std::move(next);
  }
  at.reset();
  const auto removed = remove_tree(tree_);
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_FALSE(fs::exists(tree_));
}

TEST_F(RemoveTree, RemovesEveryKindOfEntry) {
  ASSERT_EQ(::mkfifo((tree_ / "pipe").c_str(), 0600), 0);
  ASSERT_TRUE(base::write_file_atomically(tree_ / "new\nline", "", 0).ok());
  fs::create_directories(tree_ / "full/of/folders");
  for (int number = 0; number < 500; ++number)
    ASSERT_TRUE(base::Fd(::open((tree_ / std::to_string(number)).c_str(), O_CREAT | O_WRONLY, 0)));
  EXPECT_TRUE(remove_tree(tree_).ok());
  EXPECT_FALSE(fs::exists(tree_));
}

}  // namespace
}  // namespace local_e2b
