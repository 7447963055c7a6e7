#include "executor/filesystem/change.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "executor/filesystem/copy.h"
#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Changing : public testing::Test {
 protected:
  std::string key(std::string_view name) const { return tree_ / name; }

  // "made", "there" or the code.
  std::string make(std::string_view name, MakeRequest request = {kFull}) const {
    const auto made = make_directory(key(name), request);
    return made ? *made ? "made" : "there" : code_of(made);
  }
  // How many went, or the code.
  std::string remove(std::string_view name, bool recursive = true) const {
    std::uint64_t entries = 0;
    for (;;) {
      const auto pass = remove_pass(key(name), {kFull, recursive}, {});
      if (!pass) return code_of(pass);
      EXPECT_LE(pass->entries, kRemovedAtOnceMax);
      entries += pass->entries;
      if (pass->all) return std::to_string(entries);
    }
  }
  std::string move(std::string_view from, std::string_view to, bool replace = true) const {
    return code_of(move_to(key(from), key(to), {kFull, replace}));
  }
  FsResult<Copied> copy(std::string_view from, std::string_view to, CopyRequest request = {kFull},
                        std::stop_token abort = {}) const {
    return copy_to(*tree_.stagings, key(from), key(to), request, abort);
  }

  Tree tree_;
};

const Permission kNothing{PermissionMode::kReadOnly, {}};

TEST_F(Changing, MakesFolders) {
  tree_.write("file", "");
  tree_.link("dangling", "nowhere");
  EXPECT_EQ(make("a"), "made");
  EXPECT_EQ(make("a"), "there");
  EXPECT_EQ(make("b/c/d"), "FS_NOT_FOUND");
  EXPECT_EQ(make("b/c/d", {.permission = kFull, .parents = true}), "made");
  EXPECT_EQ(make("file"), "FS_NOT_DIRECTORY");
  EXPECT_EQ(make("dangling"), "FS_NOT_DIRECTORY");
  EXPECT_EQ(make("file/x", {.permission = kFull, .parents = true}), "FS_NOT_FOUND");
  const mode_t mask = ::umask(027);
  EXPECT_EQ(make("usual"), "made");
  EXPECT_EQ(make("asked", {.permission = kFull, .mode = 0777}), "made");
  ::umask(mask);
  EXPECT_EQ(tree_.mode("usual"), 0750u);
  EXPECT_EQ(tree_.mode("asked"), 0777u);
}

// covers: 2.6
TEST_F(Changing, StaysWithinItsPermission) {
  tree_.make_folder("folder");
  tree_.write("file", "");
  EXPECT_EQ(make("new", {kNothing}), "FS_SANDBOX_DENIED");
  EXPECT_EQ(make("folder", {kNothing}), "there");  // Nothing is changed.
  EXPECT_EQ(code_of(remove_pass(key("file"), {kNothing}, {})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(move_to(key("file"), key("new"), {kNothing})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(copy("file", "new", {kNothing})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(tree_.everything(), (Names{"file", "folder"}));
}

// covers: 2.6
TEST(Fence, HoldsBothEndsOfAMoveAndTheEndOfACopy) {
  const base::TemporaryFolder folder{fs::current_path()};  // In no temporary area.
  const Tree tree;
  for (const char* name : {"work", "outside"}) {
    fs::create_directory(folder / name);
    ASSERT_TRUE(base::write_file_atomically(folder / name / "file", "x", 0600).ok());
  }
  const Permission workspace{PermissionMode::kWorkspaceWrite, {folder / "work"}};
  const std::string inside = folder / "work/file", outside = folder / "outside/file";
  EXPECT_EQ(code_of(move_to(inside, folder / "outside/new", {workspace})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(move_to(outside, folder / "work/new", {workspace})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(remove_pass(folder / "work", {workspace, true}, {})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(copy_to(*tree.stagings, inside, folder / "outside/new", {workspace}, {})),
            "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(copy_to(*tree.stagings, outside, folder / "work/new", {workspace}, {})), "");
  EXPECT_EQ(code_of(move_to(inside, folder / "work/moved", {workspace})), "");
}

TEST_F(Changing, RemovesFilesLinksAndFolders) {
  tree_.make_folder("full/inner");
  tree_.write("full/inner/file", "");
  tree_.make_folder("empty");
  tree_.make_folder("kept");
  tree_.write("kept/file", "");
  tree_.link("way", "kept");
  tree_.link("full/way", "../kept");
  EXPECT_EQ(remove("none"), "FS_NOT_FOUND");
  EXPECT_EQ(remove("kept/file/below"), "FS_NOT_FOUND");
  EXPECT_EQ(remove("empty", false), "1");
  EXPECT_EQ(remove("full", false), "FS_IO_ERROR");
  EXPECT_EQ(remove("way"), "1");
  EXPECT_EQ(remove("full"), "4");
  EXPECT_EQ(tree_.everything(), (Names{"kept", "kept/file"}));
}

TEST_F(Changing, RemovesAllButMountPoints) {
  EXPECT_EQ(code_of(remove_pass("/", {kFull, true}, {})), "FS_IO_ERROR");
  const auto removed = remove_pass("/proc", {kFull, true}, {});
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().message, "cannot remove '/proc': '/proc' is a mount point");
}

TEST_F(Changing, RemovesSoManyEntriesInOnePass) {
  tree_.make_folder("many/inner");
  for (std::uint64_t i = 0; i < kRemovedAtOnceMax + 100; ++i)
    tree_.link("many/inner/" + std::to_string(i), "x");
  const auto first = remove_pass(key("many"), {kFull, true}, {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->entries, kRemovedAtOnceMax);
  EXPECT_FALSE(first->all);
  EXPECT_EQ(remove("many"), "102");
}

TEST_F(Changing, RemovesDeepTreesUpToABound) {
  const auto nested = [&](std::size_t depth) {
    std::string path = "deep";
    for (std::size_t i = 1; i < depth; ++i) path += "/d";
    tree_.make_folder(path);
  };
  nested(kRemoveDepthMax);
  EXPECT_EQ(remove("deep"), std::to_string(kRemoveDepthMax));
  nested(kRemoveDepthMax + 2);
  EXPECT_EQ(remove("deep"), "FS_IO_ERROR");
  EXPECT_EQ(remove("deep/d/d"), std::to_string(kRemoveDepthMax));
}

// covers: R6
TEST_F(Changing, RemovingStopsWhenAborted) {
  tree_.make_folder("folder");
  for (const char* name : {"folder/a", "folder/b", "folder/c"}) tree_.write(name, "");
  std::stop_source abort;
  const When removing(Step::kRemoving, [&](std::string_view) { abort.request_stop(); });
  EXPECT_EQ(code_of(remove_pass(key("folder"), {kFull, true}, abort.get_token())), "FS_ABORTED");
  EXPECT_TRUE(fs::exists(tree_.path() / "folder"));
}

TEST_F(Changing, DoesNotMindWhoElseRemoves) {
  tree_.make_folder("folder/inner");
  tree_.write("folder/inner/file", "");
  const When removing(Step::kRemoving,
                      [&](std::string_view) { fs::remove_all(tree_.path() / "folder/inner"); });
  EXPECT_EQ(remove("folder"), "1");
}

TEST_F(Changing, MovesAndReplaces) {
  tree_.write("a", "a");
  tree_.write("b", "b");
  tree_.make_folder("folder/full");
  tree_.make_folder("empty");
  tree_.link("way", "a");
  EXPECT_EQ(move("a", "b", false), "FS_NOT_OBSERVED");
  EXPECT_EQ(move("none", "b"), "FS_NOT_FOUND");
  EXPECT_EQ(move("a", "none/a"), "FS_NOT_FOUND");
  EXPECT_EQ(move("a", "empty"), "FS_NOT_OBSERVED");
  EXPECT_EQ(move("empty", "a"), "FS_NOT_OBSERVED");
  EXPECT_EQ(move("empty", "folder"), "FS_NOT_OBSERVED");
  EXPECT_EQ(move("folder", "folder/full/x"), "FS_IO_ERROR");
  EXPECT_EQ(move("a", "b"), "");
  EXPECT_EQ(tree_.read("b"), "a");
  EXPECT_EQ(move("way", "moved", false), "");
  EXPECT_TRUE(fs::is_symlink(tree_.path() / "moved"));
  EXPECT_EQ(move("folder", "empty"), "");
  EXPECT_EQ(tree_.everything(), (Names{"b", "empty", "empty/full", "moved"}));
}

TEST_F(Changing, CopiesAFile) {
  tree_.write("file", "content");
  ::chmod(key("file").c_str(), 0751);
  tree_.write("there", "old");
  ::chmod(key("there").c_str(), 0640);
  tree_.make_folder("folder");
  const auto copied = copy("file", "folder/new");
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(copied->files, 1u);
  EXPECT_EQ(copied->bytes, 7u);
  EXPECT_EQ(tree_.read("folder/new"), "content");
  EXPECT_EQ(tree_.mode("folder/new"), 0751u);
  EXPECT_EQ(code_of(copy("file", "there", {.permission = kFull, .replace = false})),
            "FS_NOT_OBSERVED");
  EXPECT_EQ(code_of(copy("file", "there", {.permission = kFull, .durable = true})), "");
  EXPECT_EQ(tree_.read("there"), "content");
  EXPECT_EQ(tree_.mode("there"), 0640u);
  EXPECT_EQ(code_of(copy("none", "new")), "FS_NOT_FOUND");
  EXPECT_EQ(code_of(copy("file", "none/new")), "FS_NOT_FOUND");
  EXPECT_EQ(code_of(copy("file", "folder")), "FS_NOT_OBSERVED");
  EXPECT_EQ(code_of(copy("folder", "new")), "FS_NOT_REGULAR_FILE");
  // Made up as it is read, its size says 0.
  const std::string made_up = "/proc/" + std::to_string(::getpid()) + "/status";
  EXPECT_EQ(code_of(copy_to(*tree_.stagings, made_up, key("status"), {kFull}, {})), "");
  EXPECT_TRUE(tree_.read("status").starts_with("Name:"));
  EXPECT_EQ(tree_.leftovers(), 0u);
}

TEST_F(Changing, CopiesATreeAsAWhole) {
  tree_.make_folder("from/inner/empty");
  tree_.write("from/a", "1");
  tree_.write("from/inner/b", "22");
  tree_.link("from/way", "inner/b");
  tree_.link("from/broken", "no\nwhere");
  ::chmod(key("from/inner").c_str(), 0700);
  ::chmod(key("from").c_str(), 0555);
  const CopyRequest recursive{.permission = kFull, .recursive = true, .durable = true};
  {
    const When publishing(Step::kPublishing,
                          [&](std::string_view) { EXPECT_FALSE(fs::exists(tree_.path() / "to")); });
    const auto copied = copy("from", "to", recursive);
    ASSERT_TRUE(copied.ok()) << copied.error().message;
    EXPECT_EQ(copied->files, 2u);
    EXPECT_EQ(copied->bytes, 3u);
  }
  Names wanted;
  for (const std::string top : {"from", "to"})
    for (const char* name : {"", "/a", "/broken", "/inner", "/inner/b", "/inner/empty", "/way"})
      wanted.push_back(top + name);
  EXPECT_EQ(tree_.everything(), wanted);
  EXPECT_EQ(tree_.mode("to"), 0555u);
  EXPECT_EQ(tree_.mode("to/inner"), 0700u);
  EXPECT_EQ(fs::read_symlink(tree_.path() / "to/broken"), "no\nwhere");
  EXPECT_EQ(tree_.read("to/inner/b"), "22");
  EXPECT_EQ(code_of(copy("from", "to", recursive)), "FS_NOT_OBSERVED");
  EXPECT_EQ(code_of(copy("from", "from/inner/x", recursive)), "FS_IO_ERROR");
  for (const char* name : {"from", "to"}) ::chmod(key(name).c_str(), 0755);
}

TEST_F(Changing, ACopyThatFailsLeavesNothing) {
  tree_.make_folder("from/closed");
  tree_.write("from/closed/file", "1");
  ::chmod(key("from/closed").c_str(), 0555);
  ASSERT_EQ(::mkfifo(key("from/pipe").c_str(), 0600), 0);
  const CopyRequest recursive{.permission = kFull, .recursive = true};
  EXPECT_EQ(code_of(copy("from", "to", recursive)), "FS_NOT_REGULAR_FILE");
  fs::remove(tree_.path() / "from/pipe");
  std::stop_source abort;
  const When publishing(Step::kPublishing, [&](std::string_view) { abort.request_stop(); });
  EXPECT_EQ(code_of(copy("from", "to", recursive, abort.get_token())), "FS_ABORTED");
  EXPECT_EQ(tree_.everything(), (Names{"from", "from/closed", "from/closed/file"}));
  EXPECT_EQ(tree_.stagings->bytes(), 0u);
  ::chmod(key("from/closed").c_str(), 0755);
}

TEST_F(Changing, CopiesNoMoreThanStagingsHold) {
  tree_.write("file", "0123456789");
  const auto stagings = tree_.reopened({.file_bytes = 9});
  EXPECT_EQ(code_of(copy_to(*stagings, key("file"), key("new"), {kFull}, {})), "FS_TOO_LARGE");
  EXPECT_EQ(tree_.everything(), Names{"file"});
}

TEST_F(Changing, CopiesSoManyEntriesAtMost) {
  tree_.make_folder("from/inner");
  tree_.write("from/inner/file", "");
  CopyRequest request{.permission = kFull, .recursive = true, .entries_max = 2};
  EXPECT_EQ(code_of(copy("from", "to", request)), "FS_TOO_LARGE");
  request.entries_max = 3;
  EXPECT_EQ(code_of(copy("from", "to", request)), "");
}

TEST_F(Changing, CopiesTreesUpToADepth) {
  std::string path = "from";
  for (std::size_t i = 0; i < kCopyDepthMax; ++i) path += "/d";
  tree_.make_folder(path);
  const CopyRequest recursive{.permission = kFull, .recursive = true};
  EXPECT_EQ(code_of(copy("from", "to", recursive)), "FS_TOO_LARGE");
  EXPECT_EQ(code_of(copy("from/d", "to", recursive)), "");
  EXPECT_EQ(tree_.leftovers(), 0u);
}

}  // namespace
}  // namespace executor
