#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/files/entry.h"
#include "executor/files/folders.h"
#include "executor/files/staging.h"
#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

const Users kUsers("/etc", false);
const User kSelf = kUsers.current();

std::vector<std::string> names(const FileResult<std::vector<Entry>>& listed) {
  std::vector<std::string> names;
  if (!listed) return {listed.error().message};
  for (const Entry& entry : *listed) names.push_back(entry.name);
  return names;
}

TEST(Entry, ShowsAFile) {
  Scratch scratch;
  scratch.write("a.txt", "hello");
  ::chmod((scratch / "a.txt").c_str(), 0640);
  const auto entry = stat_entry(scratch / "a.txt", kUsers);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->name, "a.txt");
  EXPECT_EQ(entry->kind, EntryKind::kFile);
  EXPECT_EQ(entry->size, 5);
  EXPECT_EQ(entry->mode, 0640u);
  EXPECT_EQ(entry->permissions, "-rw-r-----");
  EXPECT_EQ(entry->owner, kUsers.name_of_user(::geteuid()));
  EXPECT_FALSE(entry->symlink_target);
}

TEST(Entry, ShowsWhereALinkLeads) {
  Scratch scratch;
  scratch.write("a.txt", "hello");
  fs::create_symlink("a.txt", scratch.path() / "link");
  fs::create_symlink("nowhere", scratch.path() / "broken");
  const auto link = stat_entry(scratch / "link", kUsers);
  ASSERT_TRUE(link.ok());
  EXPECT_EQ(link->kind, EntryKind::kFile);
  EXPECT_EQ(link->symlink_target, scratch / "a.txt");
  const auto broken = stat_entry(scratch / "broken", kUsers);
  ASSERT_TRUE(broken.ok());
  EXPECT_EQ(broken->kind, EntryKind::kSymlink);
  EXPECT_EQ(broken->symlink_target, "nowhere");
  EXPECT_EQ(broken->permissions[0], 'L');
  EXPECT_EQ(stat_entry(scratch / "none", kUsers).error().code, base::ErrorCode::kNotFound);
}

TEST(Folders, AreMadeWithTheirParents) {
  Scratch scratch;
  EXPECT_TRUE(make_folder(scratch / "a/b/c", kUsers, kSelf).ok());
  EXPECT_TRUE(fs::is_directory(scratch.path() / "a/b/c"));
  EXPECT_EQ(make_folder(scratch / "a/b/c", kUsers, kSelf).error().error_number, EEXIST);
  scratch.write("file", "");
  EXPECT_EQ(make_folder(scratch / "file", kUsers, kSelf).error().error_number, ENOTDIR);
  EXPECT_EQ(make_folder(scratch / "file/x", kUsers, kSelf).error().error_number, ENOTDIR);
}

TEST(Folders, AreListedToADepthWithoutFollowingLinks) {
  Scratch scratch;
  fs::create_directories(scratch.path() / "b/c/d");
  scratch.write("a", "");
  fs::create_directory_symlink(scratch.path(), scratch.path() / "b/loop");
  EXPECT_EQ(names(list_folder(scratch.path(), 0, kUsers)), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(list_folder(scratch.path(), 2, kUsers)),
            (std::vector<std::string>{"a", "b", "c", "loop"}));
  EXPECT_EQ(names(list_folder(scratch.path(), 9, kUsers)),
            (std::vector<std::string>{"a", "b", "c", "d", "loop"}));
  EXPECT_EQ(list_folder(scratch / "a", 1, kUsers).error().error_number, ENOTDIR);
  EXPECT_EQ(list_folder(scratch / "none", 1, kUsers).error().error_number, ENOENT);
  fs::create_symlink("self", scratch.path() / "self");
  EXPECT_EQ(list_folder(scratch / "self", 1, kUsers).error().error_number, ELOOP);
}

TEST(Folders, MoveMakesParentsAndReplacesFiles) {
  Scratch scratch;
  scratch.write("a", "new");
  scratch.write("b", "old");
  EXPECT_TRUE(move_entry(scratch / "a", scratch / "b", kUsers, kSelf).ok());
  EXPECT_EQ(scratch.read("b"), "new");
  EXPECT_TRUE(move_entry(scratch / "b", scratch / "x/y/b", kUsers, kSelf).ok());
  EXPECT_EQ(scratch.read("x/y/b"), "new");
  EXPECT_EQ(move_entry(scratch / "a", scratch / "c", kUsers, kSelf).error().error_number, ENOENT);
}

TEST(StagedFile, ShowsNothingUntilItIsWhole) {
  Scratch scratch;
  scratch.write("a", "old content");
  ::chmod((scratch / "a").c_str(), 0751);
  {
    auto staged = StagedFile::begin(scratch / "a", kUsers, kSelf);
    ASSERT_TRUE(staged.ok()) << staged.error().message;
    EXPECT_TRUE(staged->write("new ").ok());
    EXPECT_EQ(scratch.read("a"), "old content");
    EXPECT_TRUE(staged->write("content").ok());
    EXPECT_TRUE(staged->commit({{"key", "value"}}).ok());
  }
  EXPECT_EQ(scratch.read("a"), "new content");
  const auto entry = stat_entry(scratch / "a", kUsers);
  EXPECT_EQ(entry->mode, 0751u);
  EXPECT_EQ(names(list_folder(scratch.path(), 1, kUsers)), std::vector<std::string>{"a"});
}

TEST(StagedFile, GivenUpLeavesNothing) {
  Scratch scratch;
  scratch.write("a", "old");
  {
    auto staged = StagedFile::begin(scratch / "a", kUsers, kSelf);
    ASSERT_TRUE(staged.ok());
    EXPECT_TRUE(staged->write("half").ok());
  }
  EXPECT_EQ(scratch.read("a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1);
}

TEST(StagedFile, WritesThroughALinkAndMakesParents) {
  Scratch scratch;
  fs::create_symlink("there/file", scratch.path() / "link");
  auto staged = StagedFile::begin(scratch / "link", kUsers, kSelf);
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  EXPECT_TRUE(staged->write("x").ok());
  EXPECT_TRUE(staged->commit({}).ok());
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
  EXPECT_EQ(scratch.read("there/file"), "x");
}

TEST(StagedFile, RefusesWhatIsNoFile) {
  Scratch scratch;
  fs::create_directory(scratch.path() / "folder");
  scratch.write("file", "");
  fs::create_symlink("self", scratch.path() / "self");
  const auto why = [&](std::string_view name) {
    return StagedFile::begin(scratch / name, kUsers, kSelf).error().error_number;
  };
  EXPECT_EQ(why("folder"), EISDIR);
  EXPECT_EQ(why("file/x"), ENOTDIR);
  EXPECT_EQ(why("self"), ELOOP);
}

TEST(StagedFile, AppendsFiles) {
  Scratch scratch;
  scratch.write("a", "one ");
  scratch.write("b", "two");
  auto staged = StagedFile::begin(scratch / "c", kUsers, kSelf);
  ASSERT_TRUE(staged.ok());
  EXPECT_TRUE(staged->append_file(scratch / "a").ok());
  EXPECT_TRUE(staged->append_file(scratch / "b").ok());
  EXPECT_EQ(staged->append_file(scratch / "none").error().error_number, ENOENT);
  EXPECT_TRUE(staged->commit({}).ok());
  EXPECT_EQ(scratch.read("c"), "one two");
}

TEST(StagedName, TellsWhetherItReplaces) {
  EXPECT_TRUE(is_staged_name(staged_name(true)));
  EXPECT_TRUE(staged_name_replaces(staged_name(true)));
  EXPECT_TRUE(is_staged_name(staged_name(false)));
  EXPECT_FALSE(staged_name_replaces(staged_name(false)));
  EXPECT_FALSE(is_staged_name(".sandfleet"));
}

}  // namespace
}  // namespace executor
