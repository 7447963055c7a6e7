#include "executor/admin/runtime_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

TEST(RuntimeFolder, MustBeARealPrivateFolder) {
  Scratch scratch;
  fs::create_directory(scratch.path() / "open");
  ::chmod((scratch / "open").c_str(), 0755);
  fs::create_directory_symlink(scratch.path(), scratch.path() / "link");
  scratch.write("file", "");
  const std::pair<const char*, std::string_view> cases[] = {
      {"open", "must have mode 0700"},
      {"link", "is not a real folder"},
      {"file", "is not a real folder"},
      {"none", "make it with mode 0700 first"},
  };
  for (const auto& [name, why] : cases) {
    const auto opened = RuntimeFolder::open(scratch / name);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, base::ErrorCode::kInvalid) << name;
    EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
  }
}

TEST(RuntimeFolder, IsHeldByOneAtATime) {
  Scratch scratch;
  {
    const auto first = RuntimeFolder::open(scratch.path());
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(RuntimeFolder::open(scratch.path()).error().code, base::ErrorCode::kConflict);
  }
  EXPECT_TRUE(RuntimeFolder::open(scratch.path()).ok());
}

TEST(RuntimeFolder, KeepsTheMarker) {
  Scratch scratch;
  const auto folder = RuntimeFolder::open(scratch.path());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*folder->read_marker(), std::nullopt);
  const wire::Identity identity{"uid-1", 2, 3, 4};
  ASSERT_TRUE(folder->write_marker(identity).ok());
  EXPECT_EQ(*folder->read_marker(), identity);
  scratch.write("marker.json", "half a mark");
  EXPECT_EQ(folder->read_marker().error().code, base::ErrorCode::kInvalid);
}

}  // namespace
}  // namespace executor
