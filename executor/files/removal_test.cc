#include "executor/files/removal.h"

#include <gtest/gtest.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

TEST(Removal, TakesAllBelowAndDoesNotMindWhatIsGone) {
  Scratch scratch;
  fs::create_directories(scratch.path() / "a/b");
  EXPECT_TRUE(remove_entry(scratch / "a").ok());
  EXPECT_FALSE(fs::exists(scratch.path() / "a"));
  EXPECT_TRUE(remove_entry(scratch / "a").ok());
  EXPECT_TRUE(remove_entry(scratch / "none/below").ok());
}

TEST(Removal, TakesALinkAndNotWhatItLeadsTo) {
  Scratch scratch;
  fs::create_directories(scratch.path() / "kept/inner");
  fs::create_directory_symlink("/proc", scratch.path() / "link");
  fs::create_directory_symlink("kept", scratch.path() / "way");
  EXPECT_TRUE(remove_entry(scratch / "link").ok());
  EXPECT_TRUE(remove_entry(scratch / "way/inner").ok());
  EXPECT_TRUE(fs::is_empty(scratch.path() / "kept"));
}

TEST(Removal, RefusesAMountPointByAnyName) {
  Scratch scratch;
  fs::create_directory_symlink("/", scratch.path() / "way");
  for (const std::string& path : {std::string("/proc"), scratch / "way/proc"}) {
    const auto removed = remove_entry(path);
    ASSERT_FALSE(removed.ok()) << path;
    EXPECT_EQ(removed.error().error_number, EBUSY) << path;
    EXPECT_EQ(removed.error().message, "cannot remove '" + path + "': '/proc' is a mount point");
  }
}

TEST(Removal, FindsMountPointsAtAPlaceAndBelowIt) {
  const std::vector<base::MountPoint> mounts{
      {"/", "ext4"}, {"/usr", "overlay"}, {"/opt/tool/bin/one", "ext4"}};
  const struct {
    const char* place;
    std::optional<fs::path> found;
  } kCases[] = {
      {"/usr", "/usr"},
      {"/opt", "/opt/tool/bin/one"},
      {"/opt/tool/bin/one", "/opt/tool/bin/one"},
      {"/opt/tool/bin/one/below", std::nullopt},
      {"/opt/tool/bin/on", std::nullopt},
      {"/us", std::nullopt},
      {"/usr/bin", std::nullopt},
      {"/home", std::nullopt},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(mount_point_within(one.place, mounts), one.found) << one.place;
}

}  // namespace
}  // namespace executor
