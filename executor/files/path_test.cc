#include "executor/files/path.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

TEST(ResolvePath, FollowsTheRulesOfTheWire) {
  const User user{"user", 1000, 1000, "/home/user", "/bin/sh"};
  const struct {
    std::string_view path, workdir, wanted;
  } cases[] = {
      {"/a/b", "", "/a/b"},
      {"/a//b/../c/.", "", "/a/c"},
      {"/", "", "/"},
      {"/..", "", "/"},
      {"~", "/work", "/home/user"},
      {"~/x", "", "/home/user/x"},
      {"x/y", "/work", "/home/user/x/y"},
      {"./x/", "", "/home/user/x"},
      {"", "", "/home/user"},
      {"", "/work/", "/work"},
      {"", "code", "/home/user/code"},
  };
  for (const auto& test : cases) {
    const auto path = resolve_path(test.path, user, test.workdir);
    ASSERT_TRUE(path.ok()) << test.path;
    EXPECT_EQ(*path, test.wanted) << test.path;
  }
}

TEST(ResolvePath, RefusesOtherHomesAndZeroBytes) {
  const User user{"user", 1000, 1000, "/home/user", "/bin/sh"};
  for (const std::string_view path : {std::string_view("~other"), std::string_view("a\0b", 3)})
    EXPECT_EQ(resolve_path(path, user, "").error().code, base::ErrorCode::kInvalid);
}

TEST(Path, IsWithinAFolderByWholeNames) {
  const struct {
    std::string_view path, folder;
    bool within;
  } cases[] = {
      {"/a/b", "/a/b", true}, {"/a/b/c", "/a/b", true}, {"/a/bc", "/a/b", false},
      {"/a", "/a/b", false},  {"/a", "/", true},        {"/", "/", true},
      {"/", "/a", false},
  };
  for (const auto& test : cases)
    EXPECT_EQ(is_within(test.path, test.folder), test.within) << test.path << " in " << test.folder;
}

}  // namespace
}  // namespace executor
