#include "executor/archive/archive.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"
#include "libs/archives/testing/tree.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using archives::testing::described;
using archives::testing::packed;
using ::testing::Contains;

class Archive : public ::testing::Test {
 protected:
  Archive() {
    tree_.make_folder("from/empty");
    tree_.write("from/file", "content");
    tree_.link("from/link", "file");
    archive_ = packed(tree_ / "from").archive;
  }
  std::string key(std::string_view name) const { return tree_ / name; }

  // In small pieces; before each of them, `each` is told how many came.
  ArchiveResult<Extracted> extract(
      std::string_view name, ExtractRequest request = {kFull},
      const std::function<void(std::size_t)>& each = [](std::size_t) {},
      const std::stop_token& abort = {}) const {
    std::size_t at = 0;
    const archives::Source source = [&]() -> archives::Result<std::string> {
      each(at);
      std::string bytes = archive_.substr(std::min(at, archive_.size()), 50);
      at += bytes.size();
      return bytes;
    };
    return extract_archive(*tree_.stagings, key(name), request, source, abort);
  }
  archives::Source archive_source() const {
    return [rest = archive_]() mutable -> archives::Result<std::string> {
      return std::exchange(rest, "");
    };
  }
  std::string create(std::string_view name, const CreateRequest& request = {}) {
    archive_.clear();
    const archives::Sink sink = [&](std::string_view bytes) -> archives::Result<base::Done> {
      archive_ += bytes;
      return base::Done{};
    };
    return code_of(create_archive(key(name), request, sink, {}));
  }

  Tree tree_;
  std::string archive_;
};

TEST_F(Archive, OfAFolderComesBackUnderAnotherName) {
  EXPECT_EQ(create("from"), "");
  const auto extracted = extract("a/b/to");
  ASSERT_TRUE(extracted) << extracted.error().message;
  EXPECT_TRUE(extracted->created);
  EXPECT_EQ(extracted->report.entries, 4u);
  EXPECT_EQ(described(key("a/b/to")), described(key("from"))) << "with its own mode and time";
  EXPECT_EQ(tree_.leftovers(), 0u);
}

TEST_F(Archive, IsOfAFolderOnly) {
  EXPECT_EQ(create("from/file"), "FS_NOT_DIRECTORY");
  EXPECT_EQ(create("none"), "FS_NOT_FOUND");
  tree_.write("file", "");
  EXPECT_EQ(code_of(extract("file")), "FS_NOT_DIRECTORY");
  EXPECT_EQ(code_of(extract("file/below")), "FS_NOT_DIRECTORY");
}

TEST_F(Archive, AddsToAFolderThatIsThere) {
  tree_.make_folder("to");
  tree_.write("to/kept", "kept");
  tree_.write("to/file", "old");
  const auto extracted = extract("to");
  ASSERT_TRUE(extracted) << extracted.error().message;
  EXPECT_FALSE(extracted->created);
  EXPECT_EQ(tree_.read("to/kept"), "kept");
  EXPECT_EQ(tree_.read("to/file"), "content");
  EXPECT_EQ(code_of(extract("to", {.permission = kFull, .replace = false})), "FS_NOT_OBSERVED");
  EXPECT_EQ(tree_.leftovers(), 0u);
}

TEST_F(Archive, LeavesOutWhatIsNamedAndWhatIsOnItsWay) {
  tree_.make_folder("from/node_modules/x");
  const std::string staged = "from/" + std::string(kPrivateStagingPrefix) + "x";
  tree_.make_folder(staged);
  EXPECT_EQ(create("from", {.excludes = {"node_modules"}}), "");
  ASSERT_TRUE(extract("to", {.permission = kFull, .excludes = {"empty"}}));
  EXPECT_THAT(tree_.everything(), Contains("to/file"));
  EXPECT_FALSE(fs::exists(key("to/node_modules")));
  EXPECT_FALSE(fs::exists(key("to/empty")));
  EXPECT_EQ(tree_.leftovers(), 1u) << "the one of the test's";
}

// covers: A5
TEST_F(Archive, AppearsAsAWholeOrNotAtAll) {
  bool seen = false;
  const auto look = [&](std::size_t) { seen = seen || fs::exists(key("to")); };
  ASSERT_TRUE(extract("to", {kFull}, look));
  EXPECT_FALSE(seen);
  archive_.resize(archive_.size() - 5);
  const auto before = tree_.everything();
  const auto cut = extract("other");
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().unfit);
  EXPECT_EQ(tree_.everything(), before);
}

// covers: A5 R6
TEST_F(Archive, GivenUpInTheMiddleLeavesNothing) {
  const auto before = tree_.everything();
  std::stop_source stop;
  const auto half_way = [&](std::size_t at) {
    if (at > archive_.size() / 2) stop.request_stop();
  };
  EXPECT_EQ(code_of(extract("to", {kFull}, half_way, stop.get_token())), "FS_ABORTED");
  EXPECT_EQ(tree_.everything(), before);
  std::stop_source late;
  const When publishing(Step::kPublishing, [&](std::string_view) { late.request_stop(); });
  EXPECT_EQ(code_of(extract("to", {kFull}, [](std::size_t) {}, late.get_token())), "FS_ABORTED");
  EXPECT_EQ(tree_.everything(), before);
}

// covers: A5
TEST_F(Archive, ThatCrashesLeavesWhatTheNextStartRemoves) {
  const auto before = tree_.everything();
  ASSERT_TRUE(ends_abruptly([&] {
    const When crash(Step::kPublishing, [](std::string_view) { ::_exit(kAbruptEnd); });
    static_cast<void>(extract("to"));
  }));
  EXPECT_NE(tree_.everything(), before);
  tree_.reopened();
  EXPECT_EQ(tree_.everything(), before);
}

// covers: A1
TEST_F(Archive, TakesNobodysPlaceThatCameMeanwhile) {
  const When publishing(Step::kPublishing,
                        [&](std::string_view) { tree_.make_folder("to/first"); });
  EXPECT_EQ(code_of(extract("to")), "FS_NOT_OBSERVED");
  EXPECT_TRUE(fs::exists(key("to/first")));
  EXPECT_FALSE(fs::exists(key("to/file")));
}

TEST_F(Archive, TellsWhatWasUnpackedBeforeItFailed) {
  tree_.make_folder("to/link");
  const auto failed = extract("to");
  ASSERT_FALSE(failed);
  EXPECT_EQ(code_of(failed), "FS_NOT_OBSERVED");
  EXPECT_EQ(failed.error().report.files, 1u) << "file comes before link";
  EXPECT_EQ(tree_.read("to/file"), "content");
}

// covers: 2.6
TEST_F(Archive, KeepsToThePermissionMode) {
  const Permission nothing{PermissionMode::kReadOnly, {}};
  EXPECT_EQ(create("from"), "") << "reading is free";
  EXPECT_EQ(code_of(extract("to", {nothing})), "FS_SANDBOX_DENIED");
  EXPECT_EQ(code_of(extract("from", {nothing})), "FS_SANDBOX_DENIED");
  // Not below /tmp, where all may write.
  const base::TemporaryFolder elsewhere(fs::current_path());
  const std::string workspace = elsewhere / "workspace", beside = elsewhere / "beside";
  fs::create_directory(workspace);
  const ExtractRequest within{{PermissionMode::kWorkspaceWrite, {workspace}}};
  const auto into = [&](const std::string& place) {
    return code_of(extract_archive(*tree_.stagings, place, within, archive_source(), {}));
  };
  EXPECT_EQ(into(workspace), "") << "into the workspace itself";
  EXPECT_EQ(into(workspace + "/new"), "");
  EXPECT_EQ(into(beside), "FS_SANDBOX_DENIED");
  fs::create_directory(beside);
  EXPECT_EQ(into(beside), "FS_SANDBOX_DENIED");
}

TEST_F(Archive, IsBoundBySizeAndByTheRoomForStagings) {
  EXPECT_EQ(code_of(extract("to", {.permission = kFull, .bytes_max = 6})), "FS_TOO_LARGE");
  tree_.stagings.reset();
  tree_.stagings = tree_.reopened({.bytes = 6});
  EXPECT_EQ(code_of(extract("to")), "FS_TOO_LARGE");
  EXPECT_EQ(tree_.stagings->bytes(), 0u);
}

}  // namespace
}  // namespace executor
