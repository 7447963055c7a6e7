#include "executor/search/query.h"

#include <gmock/gmock.h>

namespace executor {
namespace {

using ::testing::ElementsAre;

TEST(Query, AsksForFilesByTheirNames) {
  const wire::GlobArgs plain{.place = {.path = "."}};
  EXPECT_THAT(arguments_of(plain, "./"),
              ElementsAre("--no-config", "--color=never", "--files", "--null", "--", "./"));
  const wire::GlobArgs full{.place = {.path = "."},
                            .files = {.globs = {"*.ts", "!**/.git", "--pre=sh"},
                                      .types = {"cpp"},
                                      .hidden = true,
                                      .ignore_files = false,
                                      .order = wire::SearchOrder::kModified}};
  EXPECT_THAT(arguments_of(full, "./-x"),
              ElementsAre("--no-config", "--color=never", "--files", "--null", "--glob=*.ts",
                          "--glob=!**/.git", "--glob=--pre=sh", "--type=cpp", "--hidden",
                          "--no-ignore", "--sort=modified", "--", "./-x"));
}

TEST(Query, AsksForLines) {
  const wire::GrepArgs plain{.place = {.path = "."}, .pattern = "-e"};
  EXPECT_THAT(arguments_of(plain, "./"),
              ElementsAre("--no-config", "--color=never", "--json", "--regexp=-e",
                          "--case-sensitive", "--", "./"));
  const wire::GrepArgs full{.place = {.path = "."},
                            .pattern = "a b",
                            .literal = true,
                            .word = true,
                            .multiline = true,
                            .binary = true,
                            .case_mode = wire::CaseMode::kSmart,
                            .before = 1,
                            .after = 2,
                            .files = {.order = wire::SearchOrder::kPath},
                            .file_bytes_max = 9};
  EXPECT_THAT(
      arguments_of(full, "./"),
      ElementsAre("--no-config", "--color=never", "--json", "--regexp=a b", "--smart-case",
                  "--fixed-strings", "--word-regexp", "--multiline", "--text", "--before-context=1",
                  "--after-context=2", "--max-filesize=9", "--sort=path", "--", "./"));
  EXPECT_EQ(arguments_of(wire::GrepArgs{.case_mode = wire::CaseMode::kInsensitive}, "./")[4],
            "--ignore-case");
}

}  // namespace
}  // namespace executor
