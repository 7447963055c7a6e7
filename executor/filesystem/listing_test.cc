#include "executor/filesystem/listing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "executor/filesystem/staging.h"
#include "executor/filesystem/stat.h"
#include "executor/filesystem/testing/tree.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names(const FsResult<Page>& page) {
  if (!page) return {std::string(to_word(page.error().fs))};
  std::vector<std::string> names;
  for (const ListedEntry& entry : page->entries) names.push_back(entry.name);
  return names;
}

FsResult<Page> list(const Tree& tree, std::string_view name = "") {
  const std::string key = name.empty() ? tree.path().string() : tree / name;
  return list_directory(key, "", kPageEntriesMax, {});
}

// All pages of so many entries, one after the other.
std::vector<std::string> paged(std::size_t entries_max,
                               const std::function<FsResult<Page>(const std::string&)>& ask) {
  std::vector<std::string> all;
  for (std::string after;;) {
    const auto page = ask(after);
    for (const std::string& name : names(page)) all.push_back(name);
    if (!page || !page->more) return all;
    EXPECT_EQ(page->entries.size(), entries_max);
    after = all.back();
  }
}

// covers: R8 F5
TEST(Listing, IsInTheOrderOfBytes) {
  const Tree tree;
  const std::vector<std::string> wanted{".hidden", "1",    "B",        "_",   "a",
                                        "b",       "b\nc", "\xc3\xa9", "\xff"};
  for (const std::string& name : wanted) tree.write(name, "");
  EXPECT_EQ(names(list(tree)), wanted);
}

// covers: R8 8
TEST(Listing, ShowsWhatLinksLeadTo) {
  const Tree tree;
  tree.write("a-file", "123");
  tree.make_folder("b-folder");
  tree.link("c-to-file", "a-file");
  tree.link("d-to-folder", "b-folder");
  tree.link("e-broken", "nowhere");
  tree.link("f-circle", "f-circle");
  tree.link("g-below", "a-file/x");
  ASSERT_EQ(::mkfifo((tree / "h-pipe").c_str(), 0600), 0);
  const auto page = list(tree);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->entries.size(), 8u);
  EXPECT_FALSE(page->more);
  const struct {
    EntryKind kind;
    std::string target;
    bool has_version, has_size;
  } kWanted[] = {
      {EntryKind::kFile, tree / "a-file", true, true},
      {EntryKind::kFolder, tree / "b-folder", true, false},
      {EntryKind::kFile, tree / "a-file", true, true},
      {EntryKind::kFolder, tree / "b-folder", true, false},
      {EntryKind::kOther, tree / "nowhere", false, false},
      {EntryKind::kOther, tree / "f-circle", false, false},
      {EntryKind::kOther, tree / "g-below", false, false},
      {EntryKind::kOther, tree / "h-pipe", true, false},
  };
  for (std::size_t i = 0; i < 8; ++i) {
    const ListedEntry& entry = page->entries[i];
    EXPECT_EQ(entry.kind, kWanted[i].kind) << entry.name;
    EXPECT_EQ(entry.target, kWanted[i].target) << entry.name;
    EXPECT_EQ(entry.version.has_value(), kWanted[i].has_version) << entry.name;
    EXPECT_EQ(entry.size.has_value(), kWanted[i].has_size) << entry.name;
  }
  EXPECT_EQ(page->entries[2].version, (*stat_target(tree.at("a-file")))->version);
  EXPECT_EQ(page->entries[2].size, 3u);
}

// covers: R8
TEST(Listing, OfWhatIsNoFolder) {
  const Tree tree;
  tree.write("file", "");
  EXPECT_EQ(code_of(list(tree, "file")), "FS_NOT_DIRECTORY");
  EXPECT_EQ(code_of(list(tree, "none")), "FS_NOT_FOUND");
  EXPECT_EQ(code_of(list(tree, "file/below")), "FS_NOT_FOUND");
  EXPECT_EQ(code_of(list_tree(tree / "file", {}, {})), "FS_NOT_DIRECTORY");
}

// covers: R8
TEST(Listing, PagesFollowOneAnother) {
  const Tree tree;
  std::vector<std::string> wanted;
  for (char c = 'a'; c <= 'j'; ++c) wanted.emplace_back(1, c);
  for (const std::string& name : wanted) tree.write(name, "");
  for (const std::size_t entries_max : {1u, 3u, 5u, 9u, 10u, 11u})
    EXPECT_EQ(paged(entries_max,
                    [&](const std::string& after) {
                      return list_directory(tree.path().string(), after, entries_max, {});
                    }),
              wanted)
        << entries_max;
  // The page goes on by the name, be it there no more.
  fs::remove(tree.path() / "c");
  EXPECT_EQ(names(list_directory(tree.path().string(), "c", 2, {})),
            (std::vector<std::string>{"d", "e"}));
}

// covers: A5
TEST(Listing, HidesWhatIsOnItsWay) {
  const Tree tree;
  tree.write("file", "");
  const auto staging = tree.stagings->begin(*find_place(tree / "new"));
  ASSERT_TRUE(staging.ok());
  ASSERT_EQ(tree.leftovers(), 1u);
  EXPECT_EQ(names(list(tree)), std::vector<std::string>{"file"});
  EXPECT_EQ(names(list_tree(tree.path().string(), {}, {})), std::vector<std::string>{"file"});
}

// covers: R6
TEST(Listing, CanBeAborted) {
  const Tree tree;
  tree.write("file", "");
  std::stop_source abort;
  abort.request_stop();
  EXPECT_EQ(code_of(list_directory(tree.path().string(), "", 10, abort.get_token())), "FS_ABORTED");
  EXPECT_EQ(code_of(list_tree(tree.path().string(), {}, abort.get_token())), "FS_ABORTED");
}

// Only who is not root can be kept out of a folder.
class ListingAsAnother : public testing::Test {
 protected:
  static constexpr uid_t kNobody = 65534;
  void SetUp() override {
    if (::geteuid() == 0) ASSERT_EQ(::seteuid(kNobody), 0);
    tree_.emplace();
  }
  void TearDown() override {
    for (const char* name : {"closed", "names-only"}) ::chmod((*tree_ / name).c_str(), 0700);
    tree_.reset();
    if (::getuid() == 0) ASSERT_EQ(::seteuid(0), 0);
  }
  std::optional<Tree> tree_;
};

// covers: R8 8
TEST_F(ListingAsAnother, WhatFailsWithAnEntryFailsTheWhole) {
  tree_->make_folder("closed");
  tree_->write("closed/file", "");
  tree_->make_folder("names-only");
  tree_->write("names-only/file", "");
  tree_->make_folder("with-link");
  tree_->link("with-link/in", tree_->operator/("closed/file"));
  ::chmod((*tree_ / "closed").c_str(), 0);
  ::chmod((*tree_ / "names-only").c_str(), 0400);
  EXPECT_EQ(code_of(list(*tree_, "closed")), "FS_PERMISSION_DENIED");
  EXPECT_EQ(code_of(list(*tree_, "names-only")), "FS_PERMISSION_DENIED");
  EXPECT_EQ(code_of(list(*tree_, "with-link")), "FS_PERMISSION_DENIED");
  EXPECT_EQ(code_of(list(*tree_)), "");
  // A tree would silently lack what is in there.
  EXPECT_EQ(code_of(list_tree(tree_->path().string(), {}, {})), "FS_PERMISSION_DENIED");
  EXPECT_EQ(names(list_tree(tree_->path().string(), {.excludes = {"closed", "names-only"}}, {})),
            (std::vector<std::string>{"with-link", "with-link/in"}));
}

struct Forest : Tree {
  const std::vector<std::string> all{"a",       "a/1", "a/2", "a/2/x", "a/2/x/deep", "a/3",
                                     "a-other", "b",   "c",   "c/y",   "d",          "e"};
  Forest() {
    for (const char* folder : {"a/2/x", "c", "b"}) make_folder(folder);
    for (const char* file : {"a/1", "a/2/x/deep", "a/3", "a-other", "c/y", "d"}) write(file, "1");
    link("e", "a");
  }
  std::vector<std::string> listed(TreeRequest request = {}) const {
    return names(list_tree(path().string(), request, {}));
  }
};

TEST(ListedTree, HasFoldersBeforeWhatTheyHold) {
  const Forest forest;
  const auto page = list_tree(forest.path().string(), {}, {});
  EXPECT_EQ(names(page), forest.all);
  EXPECT_EQ(page->entries[4].target, forest / "a/2/x/deep");
  EXPECT_EQ(page->entries[4].size, 1u);
  EXPECT_EQ(page->entries.back().kind, EntryKind::kSymlink);
}

TEST(ListedTree, PagesFollowOneAnother) {
  const Forest forest;
  for (std::size_t entries_max = 1; entries_max <= forest.all.size() + 1; ++entries_max)
    EXPECT_EQ(paged(entries_max,
                    [&](const std::string& after) {
                      return list_tree(forest.path().string(),
                                       {.after = after, .entries_max = entries_max}, {});
                    }),
              forest.all)
        << entries_max;
}

TEST(ListedTree, GoesOnWhereTheLastEntryWas) {
  const Forest forest;
  fs::remove_all(forest.path() / "a/2");
  EXPECT_EQ(forest.listed({.after = "a/2/x", .entries_max = 2}),
            (std::vector<std::string>{"a/3", "a-other"}));
  fs::remove_all(forest.path() / "a");
  EXPECT_EQ(forest.listed({.after = "a/2/x", .entries_max = 2}),
            (std::vector<std::string>{"a-other", "b"}));
}

TEST(ListedTree, StopsAtADepthAndLeavesOutNames) {
  const Forest forest;
  EXPECT_EQ(forest.listed({.depth_max = 1}),
            (std::vector<std::string>{"a", "a-other", "b", "c", "d", "e"}));
  EXPECT_EQ(forest.listed({.depth_max = 2, .excludes = {"3", "c"}}),
            (std::vector<std::string>{"a", "a/1", "a/2", "a-other", "b", "d", "e"}));
  // Names that are left out do not count.
  EXPECT_EQ(paged(2,
                  [&](const std::string& after) {
                    return list_tree(
                        forest.path().string(),
                        {.after = after, .entries_max = 2, .excludes = {"a", "a-other"}}, {});
                  }),
            (std::vector<std::string>{"b", "c", "c/y", "d", "e"}));
}

}  // namespace
}  // namespace executor
