#include <gmock/gmock.h>
#include <unistd.h>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/etc.h"
#include "local_e2b/box/planter.h"
#include "local_e2b/box/start_builder.h"
#include "local_e2b/box/uid_ranges.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;

TEST(UidRanges, AreGivenFromTheLowestUntilAllAreTaken) {
  std::set<std::uint32_t> taken;
  EXPECT_EQ(free_range(taken), kFirstUid);
  taken.insert(kFirstUid);
  EXPECT_EQ(free_range(taken), kFirstUid + kUidsPerBox);
  for (std::size_t number = 0; number < kBoxesMax; ++number)
    taken.insert(kFirstUid + static_cast<std::uint32_t>(number) * kUidsPerBox);
  EXPECT_FALSE(free_range(taken));
  taken.erase(kFirstUid + 7 * kUidsPerBox);
  EXPECT_EQ(free_range(taken), kFirstUid + 7 * kUidsPerBox);
}

TEST(UidRanges, AreMappedWhole) {
  const BoxIds ids = range_from(kFirstUid);
  EXPECT_EQ(ids.uid_map(), "0 1879048192 65536");
  EXPECT_EQ(ids.gid_map(), "0 1879048192 65536");
  EXPECT_EQ(ids.uid_of(1000), kFirstUid + 1000);
  EXPECT_EQ(ids.gid_of(1000), kFirstUid + 1000);
}

TEST(UidRanges, OfOneIdMakeEverybodyRoot) {
  const BoxIds ids{1000, 100, 1};
  EXPECT_EQ(ids.uid_map(), "0 1000 1");
  EXPECT_EQ(ids.gid_map(), "0 100 1");
  for (const std::uint32_t inside : {kRootInside, kUserInside}) {
    EXPECT_EQ(ids.uid_of(inside), 1000u);
    EXPECT_EQ(ids.gid_of(inside), 100u);
  }
}

TEST(UidRanges, AreKnownByAnyIdInThem) {
  EXPECT_EQ(range_of(kFirstUid), kFirstUid);
  EXPECT_EQ(range_of(kFirstUid + 1000), kFirstUid);
  EXPECT_EQ(range_of(kFirstUid + kUidsPerBox), kFirstUid + kUidsPerBox);
  EXPECT_FALSE(range_of(0));
  EXPECT_FALSE(range_of(kFirstUid - 1));
  EXPECT_FALSE(range_of(kFirstUid + kBoxesMax * kUidsPerBox));
}

TEST(BoxRecord, SurvivesAsJson) {
  const BoxRecord box{"id", 42, 1'234'567'890'123, "/state/boxes/id", "/cg/fleet/id", 0x7fff'0000};
  const auto back = box_record_from_json(*base::parse_json(base::to_text(to_json(box))));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_json(*back), to_json(box));
}

TEST(BoxRecord, IsRefusedWhenItIsDamaged) {
  const base::Json whole = to_json(BoxRecord{"id", 42, 7, "/f", "/c", 9});
  for (const auto& [key, value] : whole.items()) {
    base::Json damaged = whole;
    damaged[key] = nullptr;
    EXPECT_FALSE(box_record_from_json(damaged).ok()) << key;
  }
  for (const char* key : {"initPid", "uidBase"})
    for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{1} << 40}) {
      base::Json damaged = whole;
      damaged[key] = number;
      EXPECT_FALSE(box_record_from_json(damaged).ok()) << key << " " << number;
    }
}

TEST(BuilderReport, NamesInitAndTheFirstFailure) {
  const Built good = parse_report("{\"initPid\":7}\n");
  EXPECT_EQ(good.init_pid, 7);
  EXPECT_FALSE(good.failure);
  const Built bad = parse_report(
      "{\"step\":\"a\",\"message\":\"b\"}\n{\"initPid\":7}\n{\"step\":\"c\",\"message\":\"d\"}\n");
  EXPECT_EQ(bad.init_pid, 7);
  ASSERT_TRUE(bad.failure);
  EXPECT_EQ(bad.failure->step, "a");
  EXPECT_TRUE(parse_report("").failure);
  EXPECT_TRUE(parse_report("noise\n{\"initPid\":-1}\n").failure);
}

TEST(Builder, IsKilledWhenItTakesTooLong) {
  const base::TemporaryFolder folder(fs::temp_directory_path());
  const fs::path slow = folder.path() / "slow-builder";
  ASSERT_TRUE(base::write_file_atomically(slow, "#!/bin/sh\nexec sleep 1000\n", 0755).ok());
  const Built built = run_builder(slow, Blueprint{.id = "x"}, base::Milliseconds(50));
  ASSERT_TRUE(built.failure);
  EXPECT_THAT(built.failure->message, testing::HasSubstr("50 ms"));
  EXPECT_TRUE(run_builder("/nonexistent", Blueprint{.id = "x"}, base::Milliseconds(50)).failure);
}

TEST(Etc, ShowsWhatIsListedOnly) {
  for (const char* name : {"profile", "alternatives", "python3.11", "ld.so.cache", "localtime"})
    EXPECT_TRUE(shown_of_etc(name)) << name;
  for (const char* name : {"shadow", "passwd", "sudoers", "ssh", "npmrc", "pip.conf", "gitconfig",
                           "kubernetes", "machine-id", "ssl", "apt", "hostname"})
    EXPECT_FALSE(shown_of_etc(name)) << name;
}

TEST(Planter, LeavesOutWhatOnlySomeMayRead) {
  const base::TemporaryFolder folder;
  const fs::path& place = folder.path();
  fs::create_directories(place / "from/open");
  fs::create_directories(place / "from/shut");
  fs::permissions(place / "from/shut", fs::perms::owner_all);
  ASSERT_TRUE(base::write_file_atomically(place / "from/open/seen", "text", 0664).ok());
  ASSERT_TRUE(base::write_file_atomically(place / "from/open/secret", "text", 0640).ok());
  fs::create_symlink("/nowhere", place / "from/link");

  Planter planter(place / "to", own_ids());
  const auto copied = planter.copy(place / "from", "");
  EXPECT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(*base::read_file(place / "to/open/seen"), "text");
  EXPECT_FALSE(fs::exists(place / "to/open/secret"));
  EXPECT_FALSE(fs::exists(place / "to/shut"));
  EXPECT_EQ(fs::read_symlink(place / "to/link"), "/nowhere");

  Planter sketch({}, own_ids());
  EXPECT_TRUE(sketch.copy(place / "from", "").ok());
  const std::string digest = planter.digest();
  EXPECT_EQ(sketch.digest(), digest) << "found without writing";
  ASSERT_TRUE(base::write_file_atomically(place / "from/open/seen", "other", 0664).ok());
  Planter changed({}, own_ids());
  EXPECT_TRUE(changed.copy(place / "from", "").ok());
  EXPECT_NE(changed.digest(), digest);
}

}  // namespace
}  // namespace local_e2b
