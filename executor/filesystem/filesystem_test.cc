#include "executor/filesystem/filesystem.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

// One executor's files, on a loop.
class Clients : public testing::Test {
 protected:
  template <typename T>
  T run(aio::Task<T> task) {
    std::optional<T> returned;
    loop_.run(until(aio::keep_result(std::move(task), returned)));
    return *std::move(returned);
  }
  static aio::Task<int> until(aio::Task<> task) {
    co_await std::move(task);
    co_return 0;
  }

  FileAddress at(std::string_view name) const { return tree_.at(name); }
  EditRequest edit(std::string old_string, std::string new_string, std::string version) const {
    return {.permission = kFull,
            .edit = {std::move(old_string), std::move(new_string)},
            .version = std::move(version)};
  }
  std::string version(std::string_view name) { return (*run(files_.stat(at(name))))->version; }

  Tree tree_;
  aio::Loop loop_;
  aio::Background background_{4};
  Filesystem files_{loop_.executor(), background_, tree_.stagings, AtHand(tree_.path().string())};
};

aio::Task<> write_letter(Filesystem& files, FileAddress address, char letter) {
  const auto wrote = co_await files.write(address, {kFull}, std::string(1000, letter), {});
  EXPECT_TRUE(wrote.ok()) << wrote.error().message;
}

aio::Task<int> write_letters(aio::Loop& loop, Filesystem& files, FileAddress address,
                             std::string& order) {
  aio::TaskGroup tasks(loop.executor());
  std::mutex mutex;
  const When published(
      Step::kPublished,
      [&](std::string_view path) {
        const auto content = base::read_file(path);
        const std::lock_guard lock(mutex);
        order += content->front();
      },
      When::Times::kAlways);
  for (char letter = 'a'; letter <= 'z'; ++letter)
    tasks.spawn(write_letter(files, address, letter));
  co_await tasks.wait();
  co_return 0;
}

// covers: C2
TEST_F(Clients, WritesOfOneFileAreDoneInTheOrderOfTheirArrival) {
  tree_.make_folder("real");
  tree_.link("way", "real");
  for (const char* name : {"real/file", "way/file"}) {
    std::string order;
    loop_.run(write_letters(loop_, files_, at(name), order));
    EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyz") << name;
    EXPECT_EQ(tree_.read(name), std::string(1000, 'z'));
  }
}

aio::Task<> edit_file(Filesystem& files, FileAddress address, EditRequest request,
                      std::vector<std::string>& codes) {
  const auto edited = co_await files.edit(std::move(address), std::move(request), {});
  codes.push_back(code_of(edited));
}

aio::Task<int> edit_twice(aio::Loop& loop, Filesystem& files, std::vector<FileAddress> addresses,
                          std::vector<EditRequest> requests, std::vector<std::string>& codes) {
  aio::TaskGroup tasks(loop.executor());
  for (std::size_t i = 0; i < requests.size(); ++i)
    tasks.spawn(edit_file(files, addresses[i], requests[i], codes));
  co_await tasks.wait();
  co_return 0;
}

// covers: C2 C3
TEST_F(Clients, OfTwoEditsOfOneVersionOneWins) {
  tree_.link("way", "file");
  for (int i = 0; i < 20; ++i) {
    tree_.write("file", "one two");
    const std::string seen = version("file");
    std::vector<std::string> codes;
    loop_.run(edit_twice(loop_, files_, {at("file"), at("way")},
                         {edit("one", "1", seen), edit("two", "2", seen)}, codes));
    std::sort(codes.begin(), codes.end());
    EXPECT_EQ(codes, (std::vector<std::string>{"", "FS_STALE_VERSION"}));
    EXPECT_TRUE(tree_.read("file") == "1 two" || tree_.read("file") == "one 2");
  }
}

// covers: C2 C3
TEST_F(Clients, WithoutTurnsBothEditsWouldWin) {
  tree_.write("file", "one two");
  const std::string seen = version("file");
  const Without turns(Mechanism::kTurns);
  const Without last_look(Mechanism::kLastLook);
  std::atomic<int> staged = 0;
  // Each waits until the other has looked too.
  const When both(
      Step::kStaged,
      [&](std::string_view) {
        ++staged;
        EXPECT_TRUE(base::eventually([&] { return staged == 2; }));
      },
      When::Times::kAlways);
  std::vector<std::string> codes;
  loop_.run(edit_twice(loop_, files_, {at("file"), at("file")},
                       {edit("one", "1", seen), edit("two", "2", seen)}, codes));
  EXPECT_EQ(codes, (std::vector<std::string>{"", ""}));
}

aio::Task<int> abort_while_waiting(aio::Loop& loop, Filesystem& files, FileAddress address,
                                   std::string& code) {
  std::stop_source abort;
  std::optional<FsResult<WriteOutcome>> waiting;
  std::atomic<bool> publishing = false, released = false;
  const When held(Step::kPublishing, [&](std::string_view) {
    publishing = true;
    EXPECT_TRUE(base::eventually([&] { return released.load(); }));
  });
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(write_letter(files, address, 'a'));
  tasks.spawn(
      aio::keep_result(files.write(address, {kFull}, "second", abort.get_token()), waiting));
  while (!publishing) co_await aio::sleep_for(base::Milliseconds(0));
  EXPECT_FALSE(waiting);
  abort.request_stop();
  while (!waiting) co_await aio::sleep_for(base::Milliseconds(0));
  released = true;
  co_await tasks.wait();
  code = code_of(*waiting);
  co_return 0;
}

// covers: C2 R6 2.3
TEST_F(Clients, AWriteThatWaitsCanBeAborted) {
  std::string code;
  loop_.run(abort_while_waiting(loop_, files_, at("file"), code));
  EXPECT_EQ(code, "FS_ABORTED");
  EXPECT_EQ(tree_.read("file"), std::string(1000, 'a'));
  EXPECT_EQ(tree_.leftovers(), 0u);
}

// covers: 2.6
TEST_F(Clients, AChangeGoesWhereItsPathLeadsWhenItIsItsTurn) {
  tree_.make_folder("one");
  tree_.make_folder("two");
  tree_.link("way", "one");
  const When located(Step::kLocated, [&](std::string_view) {
    fs::remove(tree_.path() / "way");
    tree_.link("way", "two");
  });
  const auto wrote = run(files_.write(at("way/file"), {kFull}, "x", {}));
  ASSERT_TRUE(wrote.ok());
  EXPECT_EQ(wrote->target, tree_ / "two/file");
  EXPECT_EQ(tree_.read("two/file"), "x");
}

TEST_F(Clients, AChangeWhosePathNeverRestsFails) {
  tree_.link("way", "0");
  int turns = 0;
  const When located(
      Step::kLocated,
      [&](std::string_view) {
        fs::remove(tree_.path() / "way");
        tree_.link("way", std::to_string(++turns));
      },
      When::Times::kAlways);
  EXPECT_EQ(code_of(run(files_.write(at("way/file"), {kFull}, "x", {}))), "FS_IO_ERROR");
  EXPECT_GT(turns, 2);
}

aio::Task<FsResult<WriteOutcome>> upload(Filesystem& files, FileAddress address,
                                         std::vector<std::string> pieces) {
  CO_TRY(const auto upload, co_await files.begin_upload(std::move(address), {kFull}, {}));
  std::uint64_t offset = 0;
  for (std::string& piece : pieces) {
    const std::size_t size = piece.size();
    CO_CHECK_OK(co_await upload->write_at(offset, std::move(piece)));
    offset += size;
  }
  co_return co_await upload->commit({});
}

// covers: A1 A5
TEST_F(Clients, AnUploadBecomesVisibleAsAWhole) {
  tree_.write("file", "old");
  const When staged(Step::kStaged, [&](std::string_view) {
    EXPECT_EQ(tree_.read("file"), "old");
    EXPECT_EQ(tree_.everything(), std::vector<std::string>{"file"});
  });
  const auto wrote = run(upload(files_, at("file"), {"one ", "two ", "three"}));
  ASSERT_TRUE(wrote.ok()) << wrote.error().message;
  EXPECT_EQ(tree_.read("file"), "one two three");
  EXPECT_EQ(wrote->version, version("file"));
  EXPECT_EQ(tree_.leftovers(), 0u);
}

// Whether this process holds files open that have no name any more, below that folder.
bool holds_what_is_gone(const std::filesystem::path& folder) {
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ended;
    const std::string where = std::filesystem::read_symlink(open.path(), ended).string();
    if (where.starts_with(folder.string()) && where.ends_with(" (deleted)")) return true;
  }
  return false;
}

TEST_F(Clients, WhatWasReplacedIsLetGoOf) {
  tree_.write("file", "old");
  ASSERT_TRUE(run(files_.write(at("file"), {kFull}, "new", {})).ok());
  ASSERT_TRUE(run(upload(files_, at("file"), {"newer"})).ok());
  EXPECT_TRUE(base::eventually([&] { return !holds_what_is_gone(tree_.path()); }));
}

aio::Task<> keep_code(aio::Task<FsResult<base::Done>> task, std::string& code) {
  code = code_of(co_await std::move(task));
}

aio::Task<int> overlapping(aio::Loop& loop, Filesystem& files, FileAddress address) {
  const auto upload = co_await files.begin_upload(std::move(address), {kFull}, {});
  aio::TaskGroup tasks(loop.executor());
  std::vector<std::string> codes(20, "none");
  for (std::size_t i = 0; i < codes.size(); ++i)
    tasks.spawn(
        keep_code((*upload)->write_at(i, std::string(1, static_cast<char>('a' + i))), codes[i]));
  std::optional<FsResult<WriteOutcome>> wrote;
  tasks.spawn(aio::keep_result((*upload)->commit({}), wrote));
  co_await tasks.wait();
  EXPECT_EQ(codes, std::vector<std::string>(20, ""));
  EXPECT_EQ(code_of(*wrote), "");
  co_return 0;
}

// covers: C2
TEST_F(Clients, PiecesAndTheCommitOfAnUploadMayOverlap) {
  loop_.run(overlapping(loop_, files_, at("file")));
  EXPECT_EQ(tree_.read("file"), "abcdefghijklmnopqrst");
}

aio::Task<FsResult<base::Done>> upload_half(Filesystem& files, FileAddress address) {
  CO_TRY(const auto upload, co_await files.begin_upload(std::move(address), {kFull}, {}));
  co_return co_await upload->write_at(0, "half");
}

// covers: A5
TEST_F(Clients, AnUploadThatIsDroppedLeavesNothing) {
  tree_.write("file", "old");
  EXPECT_TRUE(run(upload_half(files_, at("file"))).ok());
  EXPECT_EQ(tree_.read("file"), "old");
  EXPECT_EQ(tree_.everything(), std::vector<std::string>{"file"});
  EXPECT_EQ(tree_.stagings->count(), 0u);
}

aio::Task<FsResult<WriteOutcome>> upload_aborted(Filesystem& files, FileAddress address) {
  std::stop_source abort;
  CO_TRY(const auto upload, co_await files.begin_upload(std::move(address), {kFull}, {}));
  CO_CHECK_OK(co_await upload->write_at(0, "half"));
  abort.request_stop();
  co_return co_await upload->commit(abort.get_token());
}

// covers: 2.3 R6
TEST_F(Clients, AnUploadCanBeAbortedUntilItIsCommitted) {
  EXPECT_EQ(code_of(run(upload_aborted(files_, at("new/file")))), "FS_ABORTED");
  EXPECT_TRUE(tree_.everything().empty());
}

// covers: R8
TEST_F(Clients, AskForPagesWithinBounds) {
  for (std::size_t i = 0; i < kPageEntriesMax + 5; ++i) tree_.link(std::to_string(i), "x");
  const auto page = run(files_.list_directory(at("."), "", SIZE_MAX, {}));
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->entries.size(), kPageEntriesMax);
  EXPECT_TRUE(page->more);
  EXPECT_EQ(run(files_.list_directory(at("."), "", 0, {}))->entries.size(), 1u);
  EXPECT_EQ(run(files_.list_tree(at("."), {.entries_max = 0}, {}))->entries.size(), 1u);
  EXPECT_EQ(run(files_.list_tree(at("."), {.entries_max = SIZE_MAX}, {}))->entries.size(),
            kPageEntriesMax);
}

TEST_F(Clients, RemoveLargeTreesInOneCall) {
  tree_.make_folder("many");
  for (std::uint64_t i = 0; i < kRemovedAtOnceMax + 5; ++i)
    tree_.link("many/" + std::to_string(i), "x");
  EXPECT_EQ(*run(files_.remove(at("many"), {kFull, true}, {})), kRemovedAtOnceMax + 6);
  EXPECT_EQ(code_of(run(files_.remove(at("many"), {kFull, true}, {}))), "FS_NOT_FOUND");
}

TEST_F(Clients, MakeMoveAndCopy) {
  tree_.link("way", "none/deep");
  const auto made =
      run(files_.make_directory(at("way"), {.permission = kFull, .parents = true}, {}));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->target.key, tree_ / "none/deep");
  EXPECT_FALSE(run(files_.make_directory(at("way"), {kFull}, {}))->created);
  tree_.write("none/deep/file", "content");
  EXPECT_EQ(run(files_.copy(at("way/file"), at("copy"), {kFull}, {}))->target.key, tree_ / "copy");
  EXPECT_EQ(run(files_.rename(at("copy"), at("way/moved"), {kFull}, {}))->key,
            tree_ / "none/deep/moved");
  EXPECT_EQ(run(files_.rename(at("way"), at("way"), {kFull}, {}))->key, tree_ / "way");
  EXPECT_EQ(tree_.everything(), (std::vector<std::string>{"none", "none/deep", "none/deep/file",
                                                          "none/deep/moved", "way"}));
}

aio::Task<> keep_key(aio::Task<FsResult<Target>> task, int& done) {
  static_cast<void>(co_await std::move(task));
  ++done;
}

aio::Task<int> exchange(aio::Loop& loop, Filesystem& files, FileAddress one, FileAddress other) {
  aio::TaskGroup tasks(loop.executor());
  int done = 0;
  for (int i = 0; i < 10; ++i) {
    tasks.spawn(keep_key(files.rename(one, other, {kFull}, {}), done));
    tasks.spawn(keep_key(files.rename(other, one, {kFull}, {}), done));
  }
  co_await tasks.wait();
  EXPECT_EQ(done, 20);
  co_return 0;
}

// covers: C2
TEST_F(Clients, MovesThatCrossDoNotWaitForEachOther) {
  tree_.write("one", "x");
  loop_.run(exchange(loop_, files_, at("one"), at("other")));
  EXPECT_EQ(tree_.everything().size(), 1u);
}

aio::Task<int> watch_a_write(aio::Loop& loop, Filesystem& files, FileAddress folder,
                             FileAddress file, std::vector<std::string>& names) {
  const auto watch = co_await files.watch(std::move(folder), true);
  if (!watch) co_return 1;
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(Watch::run(*watch));
  const auto wrote = co_await files.write(std::move(file), {kFull}, "x", {});
  EXPECT_TRUE(wrote.ok());
  while (names.empty()) {
    co_await (*watch)->wait();
    for (const WatchEvent& event : (*watch)->take()) names.push_back(event.name);
  }
  (*watch)->stop();
  co_await tasks.wait();
  co_return 0;
}

TEST_F(Clients, WatchFilesAppear) {
  tree_.make_folder("real");
  tree_.link("way", "real");
  std::vector<std::string> names;
  ASSERT_EQ(loop_.run(watch_a_write(loop_, files_, at("way"), at("real/file"), names)), 0);
  EXPECT_EQ(names, std::vector<std::string>{"file"});
  tree_.write("file", "");
  EXPECT_EQ(code_of(run(files_.watch(at("file"), false))), "FS_NOT_DIRECTORY");
  EXPECT_EQ(code_of(run(files_.watch(at("none"), false))), "FS_NOT_FOUND");
}

aio::Task<FsResult<std::string>> read_all(Filesystem& files, FileAddress address) {
  CO_TRY(const auto opened,
         co_await files.open(std::move(address), {.as = ReadRequest::As::kText}, 4096, {}));
  std::string content = opened.first;
  while (!opened.reader->at_end()) {
    CO_TRY(const std::string piece, co_await files.read(opened.reader, 4096, {}));
    content += piece;
  }
  co_return content;
}

// covers: R4 C4
TEST_F(Clients, ReadAndLookByPathInOneStep) {
  const std::string content(100'000, 'x');
  tree_.write("file", content);
  tree_.link("way", "file");
  EXPECT_EQ(*run(read_all(files_, at("way"))), content);
  EXPECT_EQ(code_of(run(read_all(files_, at("none")))), "FS_NOT_FOUND");
  EXPECT_EQ((*run(files_.lstat(at("way"))))->link_target, "file");
  EXPECT_EQ(run(files_.resolve(at("way")))->key, tree_ / "file");
}

}  // namespace
}  // namespace executor
