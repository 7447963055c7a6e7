// Each bound of the store, reached.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <fstream>

#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/folder.h"
#include "libs/manifests/identity.h"
#include "libs/manifests/intake.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void touch(const fs::path& path, const std::string& content = "") {
  std::ofstream(path) << content;
}

std::size_t files_in(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.is_regular_file() ? 1 : 0;
  return count;
}

TEST(Bounds, OfTheFilesInAFolder) {
  const base::TemporaryFolder folder;
  for (std::size_t index = 0; index <= kFilesMax; ++index)
    base::Fd(::open((folder.path() / (std::to_string(index) + ".yaml")).c_str(), O_CREAT | O_WRONLY,
                    0600));
  FolderReader reader(folder.path(), "default");
  const auto files = reader.read_all();
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().message, HasSubstr("holds more than 100000 manifests"));
}

TEST(Bounds, OfTheRequestsTakenAtOnceAndTheResultsKept) {
  const base::TemporaryFolder folder;
  const Layout layout{folder.path()};
  const Disk disk;
  ASSERT_TRUE(disk.make_folders(layout.results()));
  for (std::size_t index = 0; index < kRequestsMax + 5; ++index)
    touch(layout.requests() / (std::to_string(30000 + index) + ".json"), "{}");
  const Intake intake(layout, disk);
  const auto first = intake.pending();
  ASSERT_TRUE(first);
  ASSERT_THAT(*first, SizeIs(kRequestsMax));
  EXPECT_EQ(first->front().id, "30000");
  for (std::size_t index = 0; index < kResultsMax + 5; ++index)
    touch(layout.results() / (std::to_string(10000 + index) + ".json"), "{}");
  ASSERT_TRUE(intake.answer("30000", {true, "done"}));
  EXPECT_EQ(files_in(layout.results()), kResultsMax);
  EXPECT_TRUE(fs::exists(layout.results() / "30000.json"));
  EXPECT_FALSE(fs::exists(layout.results() / "10000.json"));
  const auto second = intake.pending();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->front().id, "30001");
}

TEST(Bounds, OfALargeRequest) {
  const base::TemporaryFolder folder;
  const Layout layout{folder.path()};
  const Disk disk;
  ASSERT_TRUE(disk.make_folders(layout.results()));
  touch(layout.requests() / "1.json", std::string(100'000, ' '));
  const auto pending = Intake(layout, disk).pending();
  ASSERT_TRUE(pending);
  ASSERT_THAT(*pending, SizeIs(1));
  ASSERT_FALSE((*pending)[0].request);
  EXPECT_THAT((*pending)[0].request.error().message, HasSubstr("larger than"));
}

TEST(Bounds, OfTheListOfUids) {
  const base::TemporaryFolder folder;
  const Disk disk;
  auto opened = IdentityFolder::open(folder.path(), folder.path() / "fallback", disk);
  ASSERT_TRUE(opened) << opened.error().message;
  IdentityFolder identity = *std::move(opened);
  const Id kept{Kind::kSandbox, {"default", "kept"}};
  ASSERT_TRUE(identity.add({{kept, {"uid-kept"}}}));
  for (int index = 0; index < 1200; ++index) {
    const Id id{Kind::kSandbox, {"default", "s" + std::to_string(index)}};
    ASSERT_TRUE(identity.add({{id, {"uid"}}}));
    ASSERT_TRUE(identity.forget(id));
  }
  const auto lines = base::read_file(folder.path() / ".sandfleet" / "uids.log");
  ASSERT_TRUE(lines);
  EXPECT_LE(base::split(*lines, '\n').size(), 1010u);
  const auto again = IdentityFolder::open(folder.path(), folder.path() / "fallback", disk);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->births(), (std::map<Id, Birth>{{kept, {"uid-kept"}}}));
}

}  // namespace
}  // namespace manifests
