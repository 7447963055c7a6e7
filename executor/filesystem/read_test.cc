#include "executor/filesystem/read.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "executor/filesystem/listing.h"
#include "executor/filesystem/stat.h"
#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"
#include "executor/filesystem/text.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using As = ReadRequest::As;

// The content, or the code.
std::string read(const std::string& key, const ReadRequest& request) {
  auto reader = FileReader::open(key, request);
  if (!reader) return std::string(to_word(reader.error().fs));
  const auto content = read_whole(*std::move(reader), {});
  return content ? *content : std::string(to_word(content.error().fs));
}

// The pieces of a text, then the code it ended with.
std::vector<std::string> pieces(const std::string& key, std::size_t bytes) {
  auto reader = FileReader::open(key, {.as = As::kText});
  if (!reader) return {std::string(to_word(reader.error().fs))};
  std::vector<std::string> pieces;
  for (;;) {
    const auto piece = reader->next(bytes, {});
    if (!piece) pieces.emplace_back(to_word(piece.error().fs));
    if (!piece || piece->empty()) return pieces;
    pieces.push_back(*piece);
  }
}

// covers: R1
TEST(Read, SaysFirstThatItIsAbsentThenThatItIsNoFile) {
  const Tree tree;
  tree.make_folder("folder");
  tree.write("file", "x");
  ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
  const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (tree / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  // The bound does not matter before that.
  const ReadRequest request{.bytes_max = 0};
  EXPECT_EQ(read(tree / "none", request), "FS_NOT_FOUND");
  EXPECT_EQ(read(tree / "file/below", request), "FS_NOT_FOUND");
  EXPECT_EQ(read(tree / "folder", request), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(read(tree / "pipe", request), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(read(tree / "socket", request), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(read("/dev/null", request), "FS_NOT_REGULAR_FILE");
  EXPECT_EQ(read(tree / "file", request), "FS_TOO_LARGE");
}

// A writer that waits for a reader would be let go by one that only looks, into a broken pipe.
// covers: R1
TEST(Read, DoesNotOpenAPipe) {
  const Tree tree;
  ASSERT_EQ(::mkfifo((tree / "pipe").c_str(), 0600), 0);
  const base::Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(inotify.get(), (tree / "pipe").c_str(), IN_OPEN), 0);
  const auto opened = [&] {
    char events[4096];
    return ::read(inotify.get(), events, sizeof events) > 0;
  };
  EXPECT_EQ(read(tree / "pipe", {}), "FS_NOT_REGULAR_FILE");
  EXPECT_TRUE(*stat_target(tree.at("pipe")));
  EXPECT_TRUE(list_directory(tree.path().string(), "", 10, {}).ok());
  EXPECT_FALSE(opened());
  base::Fd(::open((tree / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)).reset();
  EXPECT_TRUE(opened());
}

// covers: R2 R3 8
TEST(Read, TextIsWellFormedUtf8) {
  const Tree tree;
  const struct {
    const char* name;
    std::string content, wanted;
  } kCases[] = {
      {"empty", "", ""},
      {"newlines as they are", "a\r\nb\rc\n", "a\r\nb\rc\n"},
      {"a mark as it is",
       "\xEF\xBB\xBF"
       "a",
       "\xEF\xBB\xBF"
       "a"},
      {"beyond ASCII", "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"a zero byte", "a\0b"s, "FS_NOT_TEXT"},
      {"the last byte of the sample", std::string(8191, 'a') + "\0"s, "FS_NOT_TEXT"},
      {"the first byte behind it", std::string(8192, 'a') + "\0"s, std::string(8192, 'a') + "\0"s},
      {"a bad byte", "a\xff", "FS_NOT_TEXT"},
      {"overlong", "\xc0\xaf", "FS_NOT_TEXT"},
      {"a surrogate", "\xed\xa0\x80", "FS_NOT_TEXT"},
      {"half a character at the end", "a\xe2\x82", "FS_NOT_TEXT"},
      {"nothing but half a character", "\xe2\x82", "FS_NOT_TEXT"},
      {"a bad byte far behind", std::string(3u << 20, 'a') + "\xff", "FS_NOT_TEXT"},
  };
  for (const auto& one : kCases) {
    tree.write("file", one.content);
    EXPECT_EQ(read(tree / "file", {.as = As::kText}), one.wanted) << one.name;
    EXPECT_EQ(read(tree / "file", {}), one.content) << one.name;
  }
}

// covers: R4
TEST(Read, NoPieceEndsWithinACharacter) {
  const Tree tree;
  std::string content = std::string(8190, 'a');
  for (int i = 0; i < 40; ++i) content += "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9x";
  tree.write("file", content);
  for (const std::size_t bytes : {1u, 2u, 3u, 4u, 5u, 7u, 8192u, 100'000u}) {
    std::string joined;
    for (const std::string& piece : pieces(tree / "file", bytes)) {
      EXPECT_LE(piece.size(), std::max<std::size_t>(bytes, kNulSampleBytes) + 3);
      const auto text = edit_text(piece, {"none", ""}, content.size());
      EXPECT_EQ(text.error().fs, FsCode::kEditNotFound) << "a piece that is no text";
      joined += piece;
    }
    EXPECT_EQ(joined, content) << bytes;
  }
}

// covers: R4
TEST(Read, ALateBadByteComesAfterGoodPieces) {
  const Tree tree;
  const std::string good = std::string(10'000, 'a') + "\xc3\xa9";
  for (const std::string& bad : {"\xff"s, "\xe2\x82"s, "\xed\xa0\x80 and more"s}) {
    tree.write("file", good + bad);
    auto got = pieces(tree / "file", 4096);
    ASSERT_GE(got.size(), 2u);
    EXPECT_EQ(got.back(), "FS_NOT_TEXT");
    got.pop_back();
    std::string joined;
    for (const std::string& piece : got) joined += piece;
    EXPECT_EQ(joined, good);
  }
}

// covers: R5 8
TEST(Read, TheBoundIsInclusive) {
  const Tree tree;
  tree.write("file", "12345");
  tree.write("empty", "");
  for (const As as : {As::kBytes, As::kText}) {
    EXPECT_EQ(read(tree / "file", {.as = as, .bytes_max = 5}), "12345");
    EXPECT_EQ(read(tree / "file", {.as = as, .bytes_max = 6}), "12345");
    EXPECT_EQ(read(tree / "file", {.as = as, .bytes_max = 4}), "FS_TOO_LARGE");
    EXPECT_EQ(read(tree / "file", {.as = as, .bytes_max = 0}), "FS_TOO_LARGE");
    EXPECT_EQ(read(tree / "empty", {.as = as, .bytes_max = 0}), "");
    EXPECT_EQ(read(tree / "file", {.as = as, .bytes_max = UINT64_MAX}), "12345");
  }
}

// covers: R5 8
TEST(Read, GrowthIsFoundWithOneByteMore) {
  const Tree tree;
  for (const As as : {As::kBytes, As::kText}) {
    tree.write("file", "12345");
    auto reader = FileReader::open(tree / "file", {.as = as, .bytes_max = 5});
    ASSERT_TRUE(reader.ok());
    std::ofstream(tree / "file", std::ios::app) << "6789";
    EXPECT_EQ(code_of(reader->next(100, {})), "FS_TOO_LARGE");
  }
  // Files that are made up as they are read have no size beforehand.
  const std::string made_up = "/proc/" + std::to_string(::getpid()) + "/status";
  EXPECT_EQ(read(made_up, {.bytes_max = 10}), "FS_TOO_LARGE");
  EXPECT_TRUE(read(made_up, {}).starts_with("Name:"));
}

// covers: R5
TEST(Read, APartOfAFile) {
  const Tree tree;
  tree.write("file", "0123456789");
  const auto part = [&](std::uint64_t from, std::optional<std::uint64_t> length,
                        std::optional<std::uint64_t> bytes_max = {}) {
    return read(tree / "file", {.bytes_max = bytes_max, .from = from, .length = length});
  };
  EXPECT_EQ(part(3, 4), "3456");
  EXPECT_EQ(part(8, 10), "89");
  EXPECT_EQ(part(8, {}), "89");
  EXPECT_EQ(part(10, {}), "");
  EXPECT_EQ(part(99, 1), "");
  EXPECT_EQ(part(3, 0), "");
  EXPECT_EQ(part(3, 4, 4), "3456");
  EXPECT_EQ(part(3, 4, 3), "FS_TOO_LARGE");
  EXPECT_EQ(part(7, {}, 3), "789");
  EXPECT_EQ(part(6, {}, 3), "FS_TOO_LARGE");
}

// covers: R6
TEST(Read, CanBeAbortedBetweenPieces) {
  const Tree tree;
  tree.write("file", std::string(100'000, 'a'));
  std::stop_source abort;
  auto reader = FileReader::open(tree / "file", {});
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->next(1000, abort.get_token()).ok());
  abort.request_stop();
  EXPECT_EQ(code_of(reader->next(1000, abort.get_token())), "FS_ABORTED");
}

// A folder that another has swapped for a link since its target was resolved.
struct Swapped : Tree {
  std::string key;
  Swapped() {
    make_folder("work");
    make_folder("secret");
    write("work/file", "mine");
    write("secret/file", "theirs");
    key = locate(at("work/file"))->key;
    fs::rename(path() / "work", path() / "moved");
    link("work", "secret");
  }
};

// covers: R7
TEST(Read, ASwappedFolderIsNeverAnotherFile) {
  const Swapped tree;
  const std::string folder = tree / "work";
  for (const bool by_names : {false, true}) {
    std::optional<Without> no_openat2;
    if (by_names) no_openat2.emplace(Mechanism::kOpenat2);
    EXPECT_EQ(read(tree.key, {}), "FS_IO_ERROR");
    EXPECT_EQ(code_of(stat_target(FileAddress::of_target(tree.key))), "FS_IO_ERROR");
    EXPECT_EQ(code_of(list_directory(folder, "", 10, {})), "FS_IO_ERROR");
    EXPECT_EQ(code_of(list_tree(folder, {}, {})), "FS_IO_ERROR");
    EXPECT_EQ(code_of(stat_target(FileAddress::of_target(folder))), "FS_IO_ERROR");
    // By its path it is looked for anew.
    EXPECT_EQ((*stat_target(tree.at("work/file")))->size, 6u);
  }
  // What is read where links are followed.
  const Without no_links(Mechanism::kNoLinks);
  EXPECT_EQ(read(tree.key, {}), "theirs");
}

// covers: R7
TEST(Read, AFileThatBecameALinkIsNeverAnotherFile) {
  const Tree tree;
  tree.write("other", "theirs");
  tree.link("file", "other");
  EXPECT_EQ(read(tree / "file", {}), "FS_IO_ERROR");
  const Without no_openat2(Mechanism::kOpenat2);
  EXPECT_EQ(read(tree / "file", {}), "FS_IO_ERROR");
}

// covers: R1
TEST(Read, ByNamesItFindsTheSame) {
  const Tree tree;
  tree.make_folder("a/b");
  tree.write("a/b/file", "content");
  const Without no_openat2(Mechanism::kOpenat2);
  EXPECT_EQ(read(tree / "a/b/file", {}), "content");
  EXPECT_EQ(read(tree / "a/none/file", {}), "FS_NOT_FOUND");
  EXPECT_EQ(read(tree / "a/b/file/below", {}), "FS_NOT_FOUND");
  EXPECT_TRUE(list_directory("/", "", 10, {}).ok());
}

// covers: R7
TEST(Read, WhatIsOpenStaysTheSameFile) {
  const Tree tree;
  tree.write("file", "old");
  auto reader = FileReader::open(tree / "file", {});
  ASSERT_TRUE(reader.ok());
  tree.write("file", "new and longer");
  EXPECT_EQ(*read_whole(*std::move(reader), {}), "old");
}

}  // namespace
}  // namespace executor
