#include "executor/filesystem/identity.h"

#include <gtest/gtest.h>

#include <climits>
#include <fstream>

#include "executor/filesystem/stat.h"
#include "executor/filesystem/testing/tree.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

std::string key_of(const FileAddress& address) {
  const auto target = locate(address);
  return target ? target->key : std::string(to_word(target.error().fs));
}

// covers: F1
TEST(Identity, ABlankPathNamesNothing) {
  for (const auto& path : {""s, " "s, "\t\n "s, "a\0b"s})
    EXPECT_EQ(key_of(FileAddress::of_path(path, "/tmp")), "FS_NOT_FOUND") << path;
  EXPECT_EQ(key_of(FileAddress::of_path("relative", "")), "FS_NOT_FOUND");
}

// covers: F1 W2
TEST(Identity, TheDisplayPathIsLexicalAndAbsolute) {
  const Tree tree;
  tree.make_folder("real/inner");
  tree.link("way", "real/inner");
  const struct {
    std::string path, shown, key;
  } kCases[] = {
      {"a", tree / "a", tree / "a"},
      {"./a/../b//c/", tree / "b/c", tree / "b/c"},
      {"way", tree / "way", tree / "real/inner"},
      {"way/new", tree / "way/new", tree / "real/inner/new"},
      // ".." goes back in the path as it is spelled.
      {"way/../x", tree / "x", tree / "x"},
      {"/../..", "/", "/"},
  };
  for (const auto& one : kCases) {
    const auto target = locate(tree.at(one.path));
    ASSERT_TRUE(target.ok()) << one.path;
    EXPECT_EQ(target->display, one.shown) << one.path;
    EXPECT_EQ(target->key, one.key) << one.path;
  }
}

// covers: F2
TEST(Identity, AliasesShareOneKeyThatCreationDoesNotChange) {
  const Tree tree;
  tree.make_folder("real");
  tree.link("first", "real");
  tree.link("second", tree / "first");
  tree.link("real/back", "..");
  for (const char* path :
       {"real/new/deep", "first/new/deep", "second/new/deep", "real/back/first/new/deep"})
    EXPECT_EQ(key_of(tree.at(path)), tree / "real/new/deep") << path;
  tree.make_folder("real/new");
  tree.write("real/new/deep", "");
  for (const char* path : {"real/new/deep", "second/new/deep"})
    EXPECT_EQ(key_of(tree.at(path)), tree / "real/new/deep") << path;
}

// covers: F4
TEST(Identity, ADanglingLinkLeadsToItsTarget) {
  const Tree tree;
  tree.link("dangling", "nowhere/file");
  tree.link("outward", "/none/../etc/sandfleet-none");
  tree.link("through", "nowhere/../real");
  tree.make_folder("real");
  EXPECT_EQ(key_of(tree.at("dangling")), tree / "nowhere/file");
  EXPECT_EQ(key_of(tree.at("outward")), "/etc/sandfleet-none");
  EXPECT_EQ(key_of(tree.at("through/x")), tree / "real/x");
}

// covers: F4
TEST(Identity, BelowAFileThereIsNothing) {
  const Tree tree;
  tree.write("file", "");
  tree.link("way", "file");
  tree.link("below", "file/x");
  for (const char* path : {"file/x", "file/x/y", "way/x", "below"})
    EXPECT_EQ(key_of(tree.at(path)), "FS_NOT_FOUND") << path;
}

TEST(Identity, LinksInACircleEnd) {
  const Tree tree;
  tree.link("one", "two");
  tree.link("two", "one");
  EXPECT_EQ(key_of(tree.at("one")), "FS_IO_ERROR");
  std::string last = "end";
  for (int i = 0; i < 41; ++i) {
    const std::string name = "link" + std::to_string(i);
    tree.link(name, last);
    last = name;
  }
  EXPECT_EQ(key_of(tree.at("link39")), tree / "end");
  EXPECT_EQ(key_of(tree.at("link40")), "FS_IO_ERROR");
}

// covers: F5
TEST(Identity, NamesAreAnyBytes) {
  const Tree tree;
  for (const auto& name : {"two\nlines"s, "gr\xc3\xbc\xc3\x9f"s, "not \xff\xfe UTF-8"s, " a "s,
                           "~"s, "-"s, std::string(NAME_MAX, 'x')}) {
    std::ofstream(tree / name) << "content";
    tree.link("way", name);
    EXPECT_EQ(key_of(tree.at(name)), tree / name);
    EXPECT_EQ(key_of(tree.at("way")), tree / name);
    EXPECT_TRUE(*stat_target(tree.at("way"))) << name;
    fs::remove(tree.path() / "way");
  }
  EXPECT_EQ(key_of(tree.at(std::string(NAME_MAX + 1, 'x'))), "FS_IO_ERROR");
}

// covers: F2
TEST(Identity, ATargetIsTakenAsItIs) {
  EXPECT_EQ(key_of(FileAddress::of_target("/a/b")), "/a/b");
  for (const char* key : {"/a/../b", "/a//b", "/a/", "a", "", "/a/./b"})
    EXPECT_EQ(key_of(FileAddress::of_target(key)), "FS_NOT_FOUND") << key;
}

// covers: F6
TEST(Identity, AUrlEncodesEachSegment) {
  const auto url = [](const std::string& key) { return file_url({key, key}); };
  EXPECT_EQ(url("/"), "file:///");
  EXPECT_EQ(url("/a b/c#d?e%f"), "file:///a%20b/c%23d%3Fe%25f");
  EXPECT_EQ(url("/gr\xc3\xbc\xc3\x9f/\xff\n"), "file:///gr%C3%BC%C3%9F/%FF%0A");
}

// covers: F6
TEST(Identity, ContainsGoesByWholeNames) {
  const auto inside = [](const char* parent, const char* child) {
    return contains({parent, ""}, {child, ""});
  };
  EXPECT_TRUE(inside("/a/b", "/a/b"));
  EXPECT_TRUE(inside("/a/b", "/a/b/c"));
  EXPECT_TRUE(inside("/", "/a"));
  EXPECT_FALSE(inside("/a/b", "/a/bc"));
  EXPECT_FALSE(inside("/a/b", "/a"));
}

// covers: W1 F6
TEST(Identity, ProcessesKnowATargetByItsKey) {
  EXPECT_EQ(process_path({"/real/a", "/way/a"}), "/real/a");
}

// covers: F3
TEST(Stat, AbsentIsNoFailure) {
  const Tree tree;
  tree.write("file", "12345");
  tree.link("dangling", "nowhere");
  for (const char* path : {"none", "none/below", "file/below", "dangling"}) {
    const auto found = stat_target(tree.at(path));
    ASSERT_TRUE(found.ok()) << path << ": " << found.error().message;
    EXPECT_FALSE(*found) << path;
  }
  for (const char* path : {"none", "none/below", "file/below", "file/below/more"}) {
    const auto found = stat_entry(tree.at(path));
    ASSERT_TRUE(found.ok()) << path << ": " << found.error().message;
    EXPECT_FALSE(*found) << path;
  }
  EXPECT_FALSE(*stat_target(FileAddress::of_target(tree / "file/below")));
  EXPECT_EQ(code_of(stat_target(tree.at(" "))), "FS_NOT_FOUND");
}

// covers: F2 F3
TEST(Stat, FollowsTheLastNameAndLstatDoesNot) {
  const Tree tree;
  tree.write("file", "12345");
  ::chmod((tree / "file").c_str(), 0640);
  tree.make_folder("folder");
  tree.link("way", "file");
  tree.link("dangling", "no\nwhere");
  ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
  const auto file = *stat_target(tree.at("way"));
  EXPECT_EQ(file->kind, EntryKind::kFile);
  EXPECT_EQ(file->size, 5u);
  EXPECT_EQ(file->mode, 0640u);
  EXPECT_EQ((*stat_target(tree.at("folder")))->kind, EntryKind::kFolder);
  EXPECT_EQ((*stat_target(tree.at("pipe")))->kind, EntryKind::kOther);
  EXPECT_EQ((*stat_target(tree.at("/")))->kind, EntryKind::kFolder);

  const auto link = *stat_entry(tree.at("way"));
  EXPECT_EQ(link->info.kind, EntryKind::kSymlink);
  EXPECT_EQ(link->link_target, "file");
  EXPECT_EQ((*stat_entry(tree.at("dangling")))->link_target, "no\nwhere");
  EXPECT_EQ((*stat_entry(tree.at("file")))->info.version, file->version);
}

// covers: C1
TEST(Version, ChangesWithEachWriteOfTheSameLength) {
  const Tree tree;
  tree.write("file", "aaaa");
  const auto version = [&] { return (*stat_target(tree.at("file")))->version; };
  std::string last = version();
  EXPECT_EQ(version(), last);
  EXPECT_LE(last.size(), kVersionBytesMax);
  tree.write("file", "bbbb");  // Another inode.
  EXPECT_NE(version(), last);
  // The same inode; kernels before 6.13 see only that its clock has ticked between two writes.
  last = version();
  EXPECT_TRUE(base::eventually(
      [&] { return base::write_setting(tree / "file", "cccc").ok() && version() != last; }));
  // Also when the time of its content is put back.
  last = version();
  const auto before = fs::last_write_time(tree.path() / "file");
  EXPECT_TRUE(base::eventually([&] {
    const bool wrote = base::write_setting(tree / "file", "dddd").ok();
    fs::last_write_time(tree.path() / "file", before);
    return wrote && version() != last;
  }));
}

}  // namespace
}  // namespace executor
