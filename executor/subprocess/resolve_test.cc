#include "executor/subprocess/resolve.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

class ResolveExecutable : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_.path() / "bin/folder");
    fs::create_directories(scratch_.path() / "other");
    program("bin/tool");
    program("other/tool");
    scratch_.write("bin/plain", "");
    fs::create_symlink("tool", scratch_.path() / "bin/alias");
    fs::create_symlink("nowhere", scratch_.path() / "bin/broken");
  }
  void program(const char* name) {
    scratch_.write(name, "#!/bin/sh\n");
    ::chmod((scratch_ / name).c_str(), 0755);
  }
  std::string canonical(const char* name) const {
    return fs::canonical(scratch_.path() / name).string();
  }
  // What it comes to with bin, then other as its PATH.
  std::string resolve(const std::string& command) const {
    return resolve_with(command, scratch_ / "bin" + ":" + scratch_ / "other");
  }
  static std::string resolve_with(const std::string& command, const std::string& path) {
    const auto resolved = resolve_executable(command, {{"PATH", path}});
    if (resolved) return *resolved;
    return resolved.error().fault == ProcessFault::kInvalid ? "<invalid>" : "<not found>";
  }

  Scratch scratch_;
};

// covers: 4.1
TEST_F(ResolveExecutable, LooksForANameInThePath) {
  EXPECT_EQ(resolve("tool"), canonical("bin/tool")) << "the first that fits";
  EXPECT_EQ(resolve("alias"), canonical("bin/tool")) << "canonical";
  fs::remove(scratch_.path() / "bin/tool");
  EXPECT_EQ(resolve("tool"), canonical("other/tool"));
}

// covers: 4.1
TEST_F(ResolveExecutable, TakesOnlyExecutableRegularFiles) {
  for (const char* name : {"plain", "folder", "broken", "absent"}) {
    EXPECT_EQ(resolve(name), "<not found>") << name;
    EXPECT_EQ(resolve(scratch_ / "bin" + "/" + name), "<not found>") << name;
  }
  EXPECT_EQ(resolve(scratch_ / "bin/alias"), canonical("bin/tool"));
}

// covers: 4.1
TEST_F(ResolveExecutable, RefusesNamesThatDependOnAFolder) {
  for (const std::string name : {"", "./tool", "bin/tool", "../tool"})
    EXPECT_EQ(resolve(name), "<invalid>") << name;
  EXPECT_EQ(resolve(std::string("to\0ol", 5)), "<invalid>");
  EXPECT_EQ(resolve(std::string(kPathBytesMax + 1, 'a')), "<invalid>");
}

// covers: 4.1
TEST_F(ResolveExecutable, PassesOverRelativeEntriesOfThePath) {
  const fs::path before = fs::current_path();
  fs::current_path(scratch_.path() / "bin");
  EXPECT_EQ(resolve_with("tool", ":.:../bin"), "<not found>");
  EXPECT_EQ(resolve_with("tool", "::" + scratch_ / "other"), canonical("other/tool"));
  fs::current_path(before);
}

// covers: 4.1
TEST_F(ResolveExecutable, FindsNothingWithoutAPath) {
  EXPECT_FALSE(resolve_executable("sh", {}));
  EXPECT_EQ(resolve_with("sh", ""), "<not found>");
}

}  // namespace
}  // namespace executor
