#include "executor/confine/permission.h"

#include <gtest/gtest.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using enum wire::Ceiling;

// covers: 2.6
TEST(Permission, ACallGetsNoMoreThanItsCeiling) {
  const struct {
    PermissionMode ceiling;
    std::optional<std::string_view> asked;
    PermissionMode got;
  } kCases[] = {
      {kDangerFullAccess, std::nullopt, kDangerFullAccess},
      {kDangerFullAccess, "DangerFullAccess", kDangerFullAccess},
      {kDangerFullAccess, "WorkspaceWrite", kWorkspaceWrite},
      {kDangerFullAccess, "ReadOnly", kReadOnly},
      {kWorkspaceWrite, std::nullopt, kWorkspaceWrite},
      {kWorkspaceWrite, "DangerFullAccess", kWorkspaceWrite},
      {kWorkspaceWrite, "ReadOnly", kReadOnly},
      {kReadOnly, "WorkspaceWrite", kReadOnly},
      {kReadOnly, "DangerFullAccess", kReadOnly},
      // A mode that nobody knows changes nothing.
      {kDangerFullAccess, "danger-full-access", kReadOnly},
      {kDangerFullAccess, "", kReadOnly},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(narrow({one.ceiling, {"/work"}}, one.asked, std::nullopt).mode, one.got)
        << wire::to_word(one.ceiling) << " asked for " << one.asked.value_or("nothing");
}

// covers: 2.6
TEST(Permission, AHandleOfAWiderModeIsOutOfReach) {
  EXPECT_TRUE(is_wider(kDangerFullAccess, kWorkspaceWrite));
  EXPECT_TRUE(is_wider(kWorkspaceWrite, kReadOnly));
  EXPECT_FALSE(is_wider(kWorkspaceWrite, kWorkspaceWrite));
  EXPECT_FALSE(is_wider(kReadOnly, kDangerFullAccess));
}

// covers: 2.6
TEST(Permission, RootsAreCanonicalAndNested) {
  Scratch scratch;
  fs::create_directories(scratch.path() / "work/inner");
  fs::create_directories(scratch.path() / "other");
  fs::create_directory_symlink("work", scratch.path() / "alias");
  scratch.write("file", "");
  const auto root_of = [&](std::vector<std::string> workspaces) {
    for (std::string& workspace : workspaces) workspace = scratch / workspace;
    const auto roots = writable_roots({kWorkspaceWrite, workspaces});
    return roots.empty() || roots[0] == "/tmp" ? "none" : roots[0];
  };
  EXPECT_EQ(root_of({"work"}), scratch / "work");
  EXPECT_EQ(root_of({"alias"}), scratch / "work");
  EXPECT_EQ(root_of({"work", "alias/inner"}), scratch / "work/inner");
  EXPECT_EQ(root_of({"work/inner", "work"}), scratch / "work/inner");
  EXPECT_EQ(root_of({"work", "other"}), "none");
  EXPECT_EQ(root_of({"none"}), "none");
  EXPECT_EQ(root_of({"file"}), "none");
  EXPECT_EQ(root_of({}), "none");
  EXPECT_TRUE(writable_roots({kReadOnly, {scratch / "work"}}).empty());
  EXPECT_EQ(writable_roots({kDangerFullAccess, {scratch / "work"}}), std::vector<std::string>{"/"});
}

// covers: 2.6
TEST(Permission, ChangesStayBelowARoot) {
  const std::vector<std::string> roots{"/work", "/tmp"};
  const struct {
    const char* path;
    bool allowed;
  } kCases[] = {
      {"/work/a", true},    {"/work/a/b", true}, {"/tmp/x", true}, {"/work", false},
      {"/workshop", false}, {"/work2/a", false}, {"/etc", false},  {"/", false},
  };
  for (const auto& one : kCases) EXPECT_EQ(may_change(roots, one.path), one.allowed) << one.path;
  EXPECT_TRUE(may_change({"/"}, "/etc/passwd"));
  EXPECT_TRUE(may_change({"/"}, "/"));  // What cannot be done to it says so by itself.
  EXPECT_FALSE(may_change({}, "/work/a"));
}

}  // namespace
}  // namespace executor
