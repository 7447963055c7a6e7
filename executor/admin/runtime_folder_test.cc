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

TEST(RuntimeFolder, TellsWhetherItIsTakenAndTakesNothingThereby) {
  Scratch scratch;
  EXPECT_FALSE(RuntimeFolder::is_taken(scratch / "none"));
  EXPECT_FALSE(RuntimeFolder::is_taken(scratch.path()));
  const auto held = RuntimeFolder::open(scratch.path());
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(RuntimeFolder::is_taken(scratch.path()));
}

}  // namespace
}  // namespace executor
