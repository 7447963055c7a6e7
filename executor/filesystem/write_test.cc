#include "executor/filesystem/write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "executor/filesystem/stat.h"
#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using enum FsCode;

std::string word(const std::optional<FsCode>& code) {
  return code ? std::string(to_word(*code)) : "";
}

std::optional<FileInfo> something(EntryKind kind, std::string version) {
  return FileInfo{.kind = kind, .version = std::move(version)};
}
const auto kFile = something(EntryKind::kFile, "v1");
const auto kFolder = something(EntryKind::kFolder, "v1");
const auto kPipe = something(EntryKind::kOther, "v1");
const std::optional<FileInfo> kAbsent;

// covers: 2.3
TEST(ObjectionToWrite, IsTheFirstRowThatMatches) {
  const WriteIntent anyhow = Anyhow{}, create = CreateIfAbsent{}, same = ReplaceIfVersion{"v1"},
                    other = ReplaceIfVersion{"v0"};
  const struct {
    WriteFacts facts;
    WriteIntent intent;
    std::optional<FsCode> wanted;
  } kCases[] = {
      {{true, false, kFolder}, other, kAborted},
      {{true, true, kFile}, same, kAborted},
      {{false, false, kFolder}, other, kSandboxDenied},
      {{false, false, kAbsent}, create, kSandboxDenied},
      {{false, true, kFolder}, anyhow, kNotRegularFile},
      {{false, true, kFolder}, create, kNotRegularFile},
      {{false, true, kFolder}, same, kNotRegularFile},
      {{false, true, kPipe}, other, kNotRegularFile},
      {{false, true, kFile}, create, kNotObserved},
      {{false, true, kAbsent}, create, {}},
      {{false, true, kFile}, other, kStaleVersion},
      {{false, true, kAbsent}, same, kStaleVersion},
      {{false, true, kFile}, same, {}},
      {{false, true, kFile}, anyhow, {}},
      {{false, true, kAbsent}, anyhow, {}},
  };
  for (std::size_t i = 0; i < std::size(kCases); ++i)
    EXPECT_EQ(word(objection_to_write(kCases[i].facts, kCases[i].intent)), word(kCases[i].wanted))
        << "case " << i;
}

// covers: 2.4
TEST(ObjectionToEdit, IsTheFirstRowThatMatches) {
  const std::optional<std::string> none, same = "v1", other = "v0";
  const struct {
    WriteFacts facts;
    std::optional<std::string> version;
    std::optional<FsCode> wanted;
  } kCases[] = {
      {{true, false, kAbsent}, other, kAborted},
      {{false, false, kAbsent}, other, kSandboxDenied},
      {{false, true, kAbsent}, none, kStaleVersion},
      {{false, true, kAbsent}, same, kStaleVersion},
      {{false, true, kFolder}, none, kNotRegularFile},
      {{false, true, kFolder}, other, kNotRegularFile},
      {{false, true, kFile}, other, kStaleVersion},
      {{false, true, kFile}, same, {}},
      {{false, true, kFile}, none, {}},
  };
  for (std::size_t i = 0; i < std::size(kCases); ++i)
    EXPECT_EQ(word(objection_to_edit(kCases[i].facts, kCases[i].version)), word(kCases[i].wanted))
        << "case " << i;
}

class Writing : public testing::Test {
 protected:
  std::string key(std::string_view name) const { return tree_ / name; }

  FsResult<WriteOutcome> write(std::string_view name, std::string_view content,
                               WriteRequest request = {kFull}, std::stop_token abort = {}) const {
    TRY(FileWrite staged, FileWrite::begin(*tree_.stagings, key(name), std::move(request), abort));
    CHECK_OK(staged.write_at(0, content));
    return staged.commit(key(name), abort);
  }
  FsResult<EditOutcome> edit(std::string_view name, TextEdit change,
                             std::optional<std::string> version = {}) const {
    return edit_file(*tree_.stagings, key(name),
                     {.permission = kFull,
                      .edit = std::move(change),
                      .version = std::move(version),
                      .diff_bytes_max = kDiffBytesMax},
                     {});
  }
  std::string version(std::string_view name) const {
    return (*stat_target(tree_.at(name)))->version;
  }
  static WriteRequest with(WriteIntent intent) { return {.permission = kFull, .intent = intent}; }

  Tree tree_;
};

// covers: 2.3
TEST_F(Writing, CreatesAndOverwrites) {
  const auto created = write("file", "one");
  ASSERT_TRUE(created.ok()) << created.error().message;
  EXPECT_TRUE(created->created);
  EXPECT_EQ(created->target, key("file"));
  const auto updated = write("file", "two\r\n\0\xff"s);
  ASSERT_TRUE(updated.ok());
  EXPECT_FALSE(updated->created);
  EXPECT_EQ(tree_.read("file"), "two\r\n\0\xff"s);
  EXPECT_EQ(tree_.everything(), std::vector<std::string>{"file"});
}

// covers: 2.3 8
TEST_F(Writing, RefusesByTheRealState) {
  tree_.make_folder("folder");
  tree_.write("file", "old");
  ASSERT_EQ(::mkfifo(key("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of(write("folder", "x")), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(code_of(write("pipe", "x", with(CreateIfAbsent{}))), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(code_of(write("file/below", "x")), "FS_NOT_FOUND");
  EXPECT_EQ(code_of(write("file", "x", with(CreateIfAbsent{}))), "FS_NOT_OBSERVED");
  EXPECT_EQ(code_of(write("file", "x", with(ReplaceIfVersion{"other"}))), "FS_STALE_VERSION");
  EXPECT_EQ(code_of(write("none", "x", with(ReplaceIfVersion{"other"}))), "FS_STALE_VERSION");
  EXPECT_EQ(tree_.read("file"), "old");
  EXPECT_EQ(code_of(write("file", "new", with(ReplaceIfVersion{version("file")}))), "");
  EXPECT_EQ(tree_.read("file"), "new");
  EXPECT_EQ(tree_.leftovers(), 0u);
}

// covers: 2.3 2.6
TEST_F(Writing, ReadOnlyWritesNothing) {
  tree_.make_folder("folder");
  tree_.write("file", "old");
  const Permission read_only{PermissionMode::kReadOnly, {tree_.path().string()}};
  for (const char* name : {"file", "new", "folder"})
    EXPECT_EQ(code_of(write(name, "x", {read_only})), "FS_SANDBOX_DENIED") << name;
  EXPECT_EQ(code_of(edit_file(*tree_.stagings, key("file"), {.permission = read_only}, {})),
            "FS_SANDBOX_DENIED");
  const Without fence(Mechanism::kFence);
  EXPECT_EQ(code_of(write("file", "x", {read_only})), "");
}

// Not in a temporary area, where every mode but one may write.
class Fenced : public testing::Test {
 protected:
  Fenced() {
    for (const char* name : {"work", "outside"}) fs::create_directory(folder_ / name);
  }
  std::string write(const std::string& name) const {
    const auto target = locate(FileAddress::of_path(name, folder_.path().string()));
    const Permission permission{PermissionMode::kWorkspaceWrite, {folder_ / "work"}};
    auto staged = FileWrite::begin(*tree_.stagings, target->key, {permission}, {});
    if (!staged) return code_of(staged);
    return code_of(staged->commit(target->key, {}));
  }

  base::TemporaryFolder folder_{fs::current_path()};
  Tree tree_;
};

// covers: 2.6 F4 8
TEST_F(Fenced, GoesByWhereAPathLeads) {
  fs::create_symlink("../outside", folder_ / "work/way-out");
  fs::create_symlink("../outside/new", folder_ / "work/dangling");
  fs::create_directory_symlink(folder_ / "work", folder_ / "outside/way-in");
  EXPECT_EQ(write("work/file"), "");
  EXPECT_EQ(write("work/a/b/file"), "");
  EXPECT_EQ(write("outside/way-in/file"), "");
  EXPECT_EQ(write(tree_ / "temporary"), "");
  for (const char* name : {"outside/file", "work/../outside/file", "work/way-out/file",
                           "work/dangling", "work", "workshop/file", "/etc/sandfleet-none"})
    EXPECT_EQ(write(name), "FS_SANDBOX_DENIED") << name;
  EXPECT_TRUE(fs::exists(folder_ / "work/a/b/file"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "outside"), fs::directory_iterator()),
            1);
}

// covers: 2.6
TEST_F(Fenced, GoesByWhereTheRootIsNow) {
  fs::rename(folder_ / "work", folder_ / "moved");
  fs::create_directory_symlink("moved", folder_ / "work");
  EXPECT_EQ(write("moved/file"), "");
  EXPECT_EQ(write("work/file"), "");
  fs::remove(folder_ / "work");
  EXPECT_EQ(write("moved/file"), "FS_SANDBOX_DENIED");
}

// covers: 2.6 R7
TEST_F(Fenced, ALinkThatComesAfterTheLookIsNoWayOut) {
  fs::create_directory(folder_ / "work/inner");
  const auto swapped_at = [&](Step step) {
    const When reached(step, [&](std::string_view) {
      fs::remove(folder_ / "work/inner");
      fs::create_directory_symlink("../outside", folder_ / "work/inner");
    });
    return write("work/inner/file");
  };
  EXPECT_EQ(swapped_at(Step::kLocated), "FS_IO_ERROR");
  EXPECT_TRUE(fs::is_empty(folder_ / "outside"));
  // By now the path leads out, and is told so.
  EXPECT_EQ(write("work/inner/file"), "FS_SANDBOX_DENIED");
}

// covers: A2 8
TEST_F(Writing, KeepsTheModeOfWhatItReplaces) {
  tree_.write("file", "");
  for (const mode_t mode : {0600, 0751, 0444, 0}) {
    ::chmod(key("file").c_str(), mode);
    ASSERT_EQ(code_of(write("file", "x", {.permission = kFull, .mode = 0640})), "");
    EXPECT_EQ(tree_.mode("file"), mode);
  }
  // But nothing that gives rights away.
  ::chmod(key("file").c_str(), 06755);
  ASSERT_EQ(code_of(write("file", "x")), "");
  EXPECT_EQ(tree_.mode("file"), 0755u);
}

// covers: A2
TEST_F(Writing, GivesANewFileTheModeAskedFor) {
  ASSERT_EQ(code_of(write("asked", "", {.permission = kFull, .mode = 0600})), "");
  EXPECT_EQ(tree_.mode("asked"), 0600u);
  ASSERT_EQ(code_of(write("open", "", {.permission = kFull, .mode = 0777})), "");
  EXPECT_EQ(tree_.mode("open"), 0777u);
  const mode_t mask = ::umask(027);
  const auto stagings = tree_.reopened();
  ::umask(mask);
  auto staged = FileWrite::begin(*stagings, key("usual"), {kFull}, {});
  ASSERT_TRUE(staged->commit(key("usual"), {}).ok());
  EXPECT_EQ(tree_.mode("usual"), 0640u);
}

// covers: A3
TEST_F(Writing, MakesParentsTogetherWithTheFile) {
  const mode_t mask = ::umask(022);
  ASSERT_EQ(code_of(write("content/folders/content", "x", with(CreateIfAbsent{}))), "");
  ::umask(mask);
  EXPECT_EQ(tree_.everything(),
            (std::vector<std::string>{"content", "content/folders", "content/folders/content"}));
  EXPECT_EQ(tree_.mode("content/folders"), 0755u);
  // Nobody sees a folder without it.
  {
    const When publishing(Step::kPublishing,
                          [&](std::string_view) { EXPECT_FALSE(fs::exists(tree_.path() / "a")); });
    ASSERT_EQ(code_of(write("a/b/c", "x")), "");
  }
  EXPECT_EQ(tree_.read("a/b/c"), "x");
}

// covers: A3
TEST_F(Writing, SharesParentsThatAppearMeanwhile) {
  {
    const When publishing(Step::kPublishing, [&](std::string_view) {
      tree_.make_folder("a");
      tree_.write("a/theirs", "y");
    });
    ASSERT_EQ(code_of(write("a/b/c", "x")), "");
  }
  EXPECT_EQ(tree_.everything(), (std::vector<std::string>{"a", "a/b", "a/b/c", "a/theirs"}));
  {
    const When publishing(Step::kPublishing, [&](std::string_view) { tree_.write("d", "y"); });
    EXPECT_EQ(code_of(write("d/e/f", "x")), "FS_NOT_FOUND");
  }
  EXPECT_EQ(tree_.leftovers(), 0u);
}

// covers: A3
TEST_F(Writing, MakesAFolderAnewThatWentMeanwhile) {
  tree_.make_folder("folder");
  const When staged(Step::kStaged, [&](std::string_view) { fs::remove(tree_.path() / "folder"); });
  ASSERT_EQ(code_of(write("folder/file", "x")), "");
  EXPECT_EQ(tree_.everything(), (std::vector<std::string>{"folder", "folder/file"}));
}

// What had its place is not gone for as long as somebody holds it.
TEST_F(Writing, LeavesItToTheCallerWhenToLetGoOfWhatItReplaced) {
  tree_.write("file", "old");
  const auto wrote = write("file", "new");
  ASSERT_TRUE(wrote.ok());
  EXPECT_EQ(*base::read_file("/proc/self/fd/" + std::to_string(wrote->replaced.get())), "old");
  EXPECT_FALSE(write("created", "new")->replaced);
}

// covers: A3 F4
TEST_F(Writing, ReplacesTheTargetOfALinkAndNotTheLink) {
  tree_.make_folder("real");
  tree_.write("real/file", "old");
  tree_.link("way", "real/file");
  tree_.link("dangling", "real/new");
  for (const char* name : {"way", "dangling"}) {
    const auto target = locate(tree_.at(name));
    auto staged = FileWrite::begin(*tree_.stagings, target->key, {kFull}, {});
    ASSERT_TRUE(staged->write_at(0, "new").ok());
    ASSERT_TRUE(staged->commit(target->key, {}).ok());
    EXPECT_TRUE(fs::is_symlink(tree_.path() / name));
    EXPECT_EQ(tree_.read(name), "new");
  }
}

// covers: R7 2.6
TEST_F(Writing, GoesThroughNoLinkThatHasComeSince) {
  tree_.make_folder("work");
  tree_.make_folder("outside");
  const auto swap = [&](std::string_view) {
    fs::rename(tree_.path() / "work", tree_.path() / "moved");
    tree_.link("work", "outside");
  };
  {
    const When staged(Step::kStaged, swap);
    EXPECT_EQ(code_of(write("work/file", "x")), "FS_IO_ERROR");
  }
  EXPECT_EQ(code_of(write("work/file", "x")), "FS_IO_ERROR");
  EXPECT_TRUE(fs::is_empty(tree_.path() / "outside"));
  EXPECT_EQ(tree_.leftovers(), 0u);
  const Without no_links(Mechanism::kNoLinks);
  EXPECT_EQ(code_of(write("work/file", "x")), "");
  EXPECT_EQ(tree_.read("outside/file"), "x");
}

// covers: 2.3
TEST_F(Writing, AbortedBeforeItIsPublishedChangesNothing) {
  tree_.write("file", "old");
  for (const Step step : {Step::kStaged, Step::kPublishing}) {
    std::stop_source abort;
    const When reached(step, [&](std::string_view) { abort.request_stop(); });
    EXPECT_EQ(code_of(write("file", "new", {kFull}, abort.get_token())), "FS_ABORTED");
    EXPECT_EQ(code_of(write("a/b", "new", {kFull}, abort.get_token())), "FS_ABORTED");
    EXPECT_EQ(tree_.read("file"), "old");
    EXPECT_EQ(tree_.everything(), std::vector<std::string>{"file"});
  }
}

// covers: A4
TEST_F(Writing, OncePublishedItHasSucceeded) {
  for (const bool durable : {false, true}) {
    std::stop_source abort;
    const When published(Step::kPublished, [&](std::string_view) {
      abort.request_stop();
      // It is not where its name says any more.
      fs::rename(tree_.path() / "folder", tree_.path() / "elsewhere");
    });
    tree_.make_folder("folder");
    const auto wrote =
        write("folder/file", "new", {.permission = kFull, .durable = durable}, abort.get_token());
    ASSERT_TRUE(wrote.ok()) << wrote.error().message;
    EXPECT_EQ(tree_.read("elsewhere/file"), "new");
    fs::remove_all(tree_.path() / "elsewhere");
  }
}

// covers: A7 C1
TEST_F(Writing, ReturnsTheVersionThatALookShows) {
  std::set<std::string> versions;
  for (int i = 0; i < 20; ++i) {
    const auto wrote = write("a/file", "same");
    ASSERT_TRUE(wrote.ok());
    EXPECT_EQ(wrote->version, version("a/file"));
    EXPECT_TRUE(versions.insert(wrote->version).second) << "write " << i;
  }
  const auto edited = edit("a/file", {"same", "more"});
  ASSERT_TRUE(edited.ok());
  EXPECT_EQ(edited->version, version("a/file"));
  const auto created = write("b", "", with(CreateIfAbsent{}));
  EXPECT_EQ(created->version, version("b"));
}

// covers: A6
TEST_F(Writing, HandsBackTheOldText) {
  const auto before = [&](std::string_view content, std::size_t bytes_max) {
    const auto wrote = write("file", content, {.permission = kFull, .diff_bytes_max = bytes_max});
    return wrote ? wrote->before : std::optional(std::string(wrote.error().message));
  };
  EXPECT_EQ(before("one\r\n", 100), std::nullopt);  // It was created.
  EXPECT_EQ(before("two", 100), "one\n");
  EXPECT_EQ(before("three", 3), std::nullopt);
  EXPECT_EQ(before("x", 5), std::nullopt);  // "three" is as long as that.
  EXPECT_EQ(before("12345", 5), std::nullopt);
  EXPECT_EQ(before("\xff", 6), "12345");
  EXPECT_EQ(before("text", 100), std::nullopt);
  EXPECT_EQ(before("text", 0), std::nullopt);
}

// covers: A6
TEST_F(Writing, HandsBackNothingFromTenMebibytesOn) {
  const std::string below((10u << 20) - 1, 'a');
  const auto before_length = [&](std::string_view content) {
    const auto wrote = write("file", content, {.permission = kFull, .diff_bytes_max = SIZE_MAX});
    return wrote->before ? std::optional(wrote->before->size()) : std::nullopt;
  };
  ASSERT_TRUE(write("file", below).ok());
  EXPECT_EQ(before_length(below), below.size());
  EXPECT_EQ(before_length(below + "a"), std::nullopt);
  EXPECT_EQ(before_length("a"), std::nullopt);
}

// covers: 2.3 8
TEST_F(Writing, CreatingLosesToWhateverIsThereAtTheEnd) {
  const auto lost = [&](const std::function<void()>& winner) {
    const When publishing(Step::kPublishing, [&](std::string_view) { winner(); });
    return code_of(write("new", "mine", with(CreateIfAbsent{})));
  };
  EXPECT_EQ(lost([&] { tree_.write("new", "theirs"); }), "FS_NOT_OBSERVED");
  EXPECT_EQ(tree_.read("new"), "theirs");
  fs::remove(tree_.path() / "new");
  EXPECT_EQ(lost([&] { tree_.make_folder("new"); }), "FS_NOT_OBSERVED");
  EXPECT_TRUE(fs::is_directory(tree_.path() / "new"));
  fs::remove(tree_.path() / "new");
  EXPECT_EQ(lost([&] { tree_.link("new", "nowhere"); }), "FS_NOT_OBSERVED");
  fs::remove(tree_.path() / "new");
  EXPECT_EQ(tree_.leftovers(), 0u);
  const Without no_replace(Mechanism::kNoReplace);
  EXPECT_EQ(lost([&] { tree_.write("new", "theirs"); }), "");
  EXPECT_EQ(tree_.read("new"), "mine");
}

// covers: 2.3
TEST_F(Writing, CreatingLosesToWhatCameWhileItWasStaged) {
  const When staged(Step::kStaged, [&](std::string_view) { tree_.make_folder("new"); });
  EXPECT_EQ(code_of(write("new", "mine", with(CreateIfAbsent{}))), "FS_NOT_OBSERVED");
}

// covers: 2.3 C3
TEST_F(Writing, ComparesTheVersionAgainRightBeforeItReplaces) {
  tree_.write("file", "old");
  const auto overtaken = [&] {
    const When staged(Step::kStaged, [&](std::string_view) { tree_.write("file", "theirs"); });
    return code_of(write("file", "mine", with(ReplaceIfVersion{version("file")})));
  };
  EXPECT_EQ(overtaken(), "FS_STALE_VERSION");
  EXPECT_EQ(tree_.read("file"), "theirs");
  const Without last_look(Mechanism::kLastLook);
  EXPECT_EQ(overtaken(), "");
  EXPECT_EQ(tree_.read("file"), "mine");
}

// covers: 2.3
TEST_F(Writing, AFolderThatCameMeanwhileIsNotReplaced) {
  const When publishing(Step::kPublishing, [&](std::string_view) { tree_.make_folder("new"); });
  EXPECT_EQ(code_of(write("new", "mine")), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(tree_.everything(), std::vector<std::string>{"new"});
}

// Whether a reader at any time sees anything but one of the two contents.
bool torn(const fs::path& path, const std::string& one, const std::string& other,
          const std::function<void(const std::string&)>& write) {
  std::atomic<bool> done = false, seen = false;
  std::atomic<int> looks = 0;
  std::thread reader([&] {
    while (!done) {
      const auto content = base::read_file(path);
      if (!content || (*content != one && *content != other)) seen = true;
      ++looks;
    }
  });
  for (int i = 0; i < 200 || looks < 200; ++i) write(i % 2 ? one : other);
  done = true;
  reader.join();
  return seen;
}

// covers: A5 8
TEST_F(Writing, ReadersSeeTheOldContentOrTheNew) {
  const std::string one(100'000, '1'), other(50'000, '2');
  ASSERT_TRUE(write("file", one).ok());
  EXPECT_FALSE(torn(tree_ / "file", one, other,
                    [&](const std::string& content) { ASSERT_TRUE(write("file", content).ok()); }));
  // What it looks like when bytes are not gathered aside.
  EXPECT_TRUE(torn(tree_ / "file", one, other,
                   [&](const std::string& content) { std::ofstream(tree_ / "file") << content; }));
}

// What writing `name` leaves when the program ends at that step.
class Crashing : public Writing {
 protected:
  void crash_at(Step step, const char* name) {
    EXPECT_TRUE(ends_abruptly([&] {
      tree_.stagings = tree_.reopened();
      const When reached(step, [](std::string_view) { ::_exit(kAbruptEnd); });
      static_cast<void>(write(name, "new"));
    }));
    const bool published = step == Step::kPublished;
    EXPECT_EQ(tree_.read("file"), published && name == "file"s ? "new" : "old");
    EXPECT_EQ(fs::exists(tree_.path() / "new"), published && name != "file"s);
  }
  void sweep(std::size_t leftovers) {
    EXPECT_EQ(tree_.leftovers(), leftovers);
    EXPECT_EQ(tree_.reopened()->swept(), leftovers);
    EXPECT_EQ(tree_.leftovers(), 0u);
    tree_.write("file", "old");
    fs::remove_all(tree_.path() / "new");
  }
};

// covers: A5
TEST_F(Crashing, LeavesTheOldContentAndOnlyWhatIsSwept) {
  tree_.write("file", "old");
  tree_.stagings.reset();
  const Without nameless(Mechanism::kNameless);
  for (const Step step : {Step::kStaged, Step::kPublishing, Step::kPublished})
    for (const char* name : {"file", "new/folder/file"}) {
      crash_at(step, name);
      sweep(1);
    }
}

// covers: A5
TEST_F(Crashing, LeavesNothingOfAFileThatHadNoNameYet) {
  tree_.write("file", "old");
  tree_.stagings.reset();
  for (const char* name : {"file", "new/folder/file"}) {
    crash_at(Step::kStaged, name);
    sweep(0);
    crash_at(Step::kPublishing, name);
    sweep(0);
  }
  crash_at(Step::kNamed, "file");
  sweep(1);
  crash_at(Step::kNamed, "new/folder/file");
  sweep(1);
  crash_at(Step::kPublished, "file");
  sweep(0);
}

// covers: 2.4 D3 8
TEST_F(Writing, EditsAFileInItsPlace) {
  tree_.write("file",
              "\xEF\xBB\xBF"
              "one\r\ntwo\r\n");
  ::chmod(key("file").c_str(), 0750);
  const auto edited = edit("file", {"two", "$& $$ $'"}, version("file"));
  ASSERT_TRUE(edited.ok()) << edited.error().message;
  EXPECT_EQ(tree_.read("file"),
            "\xEF\xBB\xBF"
            "one\r\n$& $$ $'\r\n");
  EXPECT_EQ(tree_.mode("file"), 0750u);
  EXPECT_EQ(edited->before, "one\ntwo\n");
  EXPECT_EQ(edited->after, "one\n$& $$ $'\n");
  EXPECT_EQ(edited->replacements, 1u);
  EXPECT_EQ(edited->target, key("file"));
}

// covers: 2.4 8
TEST_F(Writing, EditsRefuseByTheFirstRowThatMatches) {
  tree_.make_folder("folder");
  tree_.write("binary", "a\0b"s);
  tree_.write("file", "a a");
  EXPECT_EQ(code_of(edit("none", {"", ""})), "FS_STALE_VERSION");
  EXPECT_EQ(code_of(edit("none", {"a", "b"}, "v")), "FS_STALE_VERSION");
  EXPECT_EQ(code_of(edit("folder", {"a", "b"}, "v")), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(code_of(edit("binary", {"a", "b"}, "v")), "FS_STALE_VERSION");
  EXPECT_EQ(code_of(edit("binary", {"", ""})), "FS_NOT_TEXT");
  EXPECT_EQ(code_of(edit("file", {"", "b"})), "FS_EDIT_NOT_FOUND");
  EXPECT_EQ(code_of(edit("file", {"a", "b"})), "FS_AMBIGUOUS_EDIT");
  EXPECT_EQ(tree_.read("file"), "a a");
  EXPECT_EQ(code_of(edit("file", {"a", "b", true})), "");
  EXPECT_EQ(tree_.read("file"), "b b");
}

// covers: 2.4 C3
TEST_F(Writing, AnEditLosesNobodysChange) {
  tree_.write("file", "a b");
  const When staged(Step::kStaged, [&](std::string_view) { tree_.write("file", "a c"); });
  EXPECT_EQ(code_of(edit("file", {"a", "x"})), "FS_STALE_VERSION");
  EXPECT_EQ(tree_.read("file"), "a c");
}

TEST_F(Writing, EditsFilesUpToABound) {
  {
    const base::Fd file(::open(key("file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(file.get(), kEditBytesMax + 1), 0);
  }
  EXPECT_EQ(code_of(edit("file", {"a", "b"})), "FS_TOO_LARGE");
  EXPECT_EQ(code_of(write("file", "", {.permission = kFull, .size = UINT64_MAX})), "FS_TOO_LARGE");
}

// covers: A1
TEST_F(Writing, DurableOnesAreWrittenAlike) {
  const auto wrote = write("a/b/file", "x", {.permission = kFull, .durable = true});
  ASSERT_TRUE(wrote.ok()) << wrote.error().message;
  EXPECT_EQ(wrote->version, version("a/b/file"));
  EXPECT_EQ(tree_.leftovers(), 0u);
}

}  // namespace
}  // namespace executor
