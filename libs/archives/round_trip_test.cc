#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "libs/archives/testing/tree.h"
#include "libs/base/testing/temporary_folder.h"

namespace archives {
namespace {

using testing::described;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::packed;
using testing::unpacked;
namespace fs = std::filesystem;

class RoundTrip : public ::testing::Test {
 protected:
  RoundTrip() {
    fs::create_directory(from);
    fs::create_directory(to);
  }
  static void run(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(bugprone-command-processor)
  }
  void write(const fs::path& path, std::string_view content) const {
    std::ofstream(from / path, std::ios::binary) << content;
  }
  // What is in `to`, its own time apart: unpacking into a folder leaves that alone.
  std::map<std::string, std::string> arrived(const std::map<std::string, std::string>& as) const {
    auto all = described(to);
    all["."] = as.at(".");
    return all;
  }

  base::TemporaryFolder folder;
  fs::path from = folder / "from", to = folder / "to";
};

class Trees : public RoundTrip, public ::testing::WithParamInterface<unsigned> {};

TEST_P(Trees, ComeBackAsTheyWere) {
  testing::grow(from, GetParam(), 250);
  const auto before = described(from);
  const auto made = packed(from);
  EXPECT_THAT(made.report.told, IsEmpty());
  EXPECT_EQ(made.report.entries, before.size());
  const auto back = unpacked(made.archive, to, {}, 1 + GetParam() * 1009);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->report.entries, made.report.entries);
  EXPECT_EQ(back->report.files, made.report.files);
  EXPECT_EQ(back->report.bytes, made.report.bytes);
  EXPECT_EQ(arrived(before), before);
  ASSERT_TRUE(back->top);
  // Once more, over what is there.
  ASSERT_TRUE(unpacked(made.archive, to));
  EXPECT_EQ(described(to).size(), before.size());
}

TEST_P(Trees, AreReadByTarAndZstd) {
  testing::grow(from, GetParam(), 120);
  write("archive", "");
  const auto before = described(from);
  const std::string archive = packed(from).archive + trailer_frame("{}");
  std::ofstream(folder / "a.tar.zst", std::ios::binary) << archive;
  const std::string file = "'" + (folder / "a.tar.zst").string() + "'";
  run("zstd -tq " + file);
  run("tar --zstd --same-permissions -C '" + to.string() + "' -xf " + file + " 2>/dev/null");
  EXPECT_EQ(described(to), before);
}

TEST_P(Trees, ThatTarMadeAreRead) {
  testing::grow(from, GetParam(), 120);
  const auto before = described(from);
  const std::string file = (folder / "a.tar.zst").string();
  run("tar --format=pax --sparse --zstd -C '" + from.string() + "' -cf '" + file + "' .");
  std::ifstream archive(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(archive), {}};
  const auto back = unpacked(bytes, to);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(arrived(before), before);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Trees, ::testing::Range(1u, 7u));

TEST_F(RoundTrip, KeepsHolesAsHoles) {
  write("holes", "begin");
  fs::resize_file(from / "holes", 50 << 20);
  const auto made = packed(from);
  EXPECT_LT(made.archive.size(), 4096u);
  ASSERT_TRUE(unpacked(made.archive, to));
  struct stat found{};
  ASSERT_EQ(::stat((to / "holes").c_str(), &found), 0);
  EXPECT_EQ(found.st_size, 50 << 20);
  EXPECT_LT(found.st_blocks * 512, 1 << 20);
}

TEST_F(RoundTrip, LeavesOutNamesAtAnyDepth) {
  fs::create_directories(from / "a/node_modules/b");
  write("a/node_modules/b/file", "x");
  write("a/kept", "x");
  const auto leaves_out = [](const std::string& name) { return name == "node_modules"; };
  const auto lean = packed(from, {.leaves_out = leaves_out});
  EXPECT_EQ(lean.report.entries, 3u) << "itself, a, a/kept";
  ASSERT_TRUE(unpacked(packed(from).archive, to, {.leaves_out = leaves_out}));
  EXPECT_TRUE(fs::exists(to / "a/kept"));
  EXPECT_FALSE(fs::exists(to / "a/node_modules"));
}

TEST_F(RoundTrip, TellsOfWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((from / "pipe").c_str(), 0600), 0);
  const auto made = packed(from);
  EXPECT_THAT(made.report.told, ElementsAre(Remarked{"pipe", Remark::kSpecial}));
  ASSERT_TRUE(unpacked(made.archive, to));
  EXPECT_TRUE(fs::is_empty(to));
}

// The sink is called while the file is read, so it may change it under the reader's hands.
class Changing : public RoundTrip, public ::testing::WithParamInterface<std::uintmax_t> {};
TEST_P(Changing, FilesAreToldAndTheArchiveStaysWhole) {
  std::string noise(4 << 20, '\0');
  unsigned state = 1;
  for (char& byte : noise) byte = static_cast<char>((state = state * 1'103'515'245 + 12'345) >> 16);
  write("a-file", noise);
  write("b-file", "as it was");
  std::string archive;
  bool changed = false;
  const auto report = pack(testing::open_folder(from), {},
                           [&](std::string_view bytes) -> Result<base::Done> {
                             archive += bytes;
                             if (!std::exchange(changed, true))
                               fs::resize_file(from / "a-file", GetParam());
                             return base::Done{};
                           },
                           {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->told, ElementsAre(Remarked{"a-file", Remark::kChanged}));
  const auto back = unpacked(archive, to);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(fs::file_size(to / "a-file"), noise.size()) << "as large as when it was begun";
  EXPECT_EQ(fs::file_size(to / "b-file"), 9u);
}
INSTANTIATE_TEST_SUITE_P(Sizes, Changing, ::testing::Values(0, 1'000'000, 5'000'000));

TEST_F(RoundTrip, HasLimits) {
  for (int i = 0; i < 10; ++i) write("file" + std::to_string(i), "0123456789");
  const auto sink = [](std::string_view) { return Result<base::Done>(base::Done{}); };
  const auto folder_fd = testing::open_folder(from);
  EXPECT_TRUE(pack(folder_fd, {.entries_max = 11}, sink, {}));
  EXPECT_EQ(pack(folder_fd, {.entries_max = 10}, sink, {}).error().fault, Fault::kTooLarge);
  const std::string archive = packed(from).archive;
  EXPECT_TRUE(unpacked(archive, to, {.entries_max = 11, .bytes_max = 100}));
  EXPECT_EQ(unpacked(archive, to, {.entries_max = 10}).error().fault, Fault::kTooLarge);
  EXPECT_EQ(unpacked(archive, to, {.bytes_max = 99}).error().fault, Fault::kTooLarge);
}

TEST_F(RoundTrip, ReplacesOnlyWhereItMay) {
  write("file", "new");
  fs::create_symlink("new", from / "link");
  const std::string archive = packed(from).archive;
  std::ofstream(to / "file") << "old";
  EXPECT_EQ(unpacked(archive, to, {.replace = false}).error().fault, Fault::kExists);
  ASSERT_TRUE(unpacked(archive, to));
  EXPECT_EQ(fs::file_size(to / "file"), 3u);
  EXPECT_EQ(unpacked(archive, to, {.replace = false}).error().fault, Fault::kExists);
}

TEST_F(RoundTrip, EndsWhenNobodyWantsIt) {
  for (int i = 0; i < 50; ++i) write("file" + std::to_string(i), "x");
  std::stop_source stop;
  const auto ended = pack(
      testing::open_folder(from), {},
      [&](std::string_view) -> Result<base::Done> { return cancelled(); }, stop.get_token());
  EXPECT_EQ(ended.error().fault, Fault::kCancelled);
  const std::string archive = packed(from).archive;
  stop.request_stop();
  EXPECT_EQ(unpacked(archive, to, {}, 100, stop.get_token()).error().fault, Fault::kCancelled);
  EXPECT_TRUE(fs::is_empty(to));
}

}  // namespace
}  // namespace archives
