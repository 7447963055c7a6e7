#include "local_e2b/state/records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "libs/base/testing/temporary_folder.h"
#include "libs/base/time.h"

namespace local_e2b {
namespace {

Sandbox example() {
  Sandbox sandbox;
  sandbox.id = "i0123456789abcdefghij";
  sandbox.team = "red";
  sandbox.template_id = "base";
  sandbox.phase = Phase::kPausing;
  sandbox.metadata = {{"owner", "uid-1"}, {"odd", "\"\n"}};
  sandbox.auto_pause = true;
  sandbox.timeout_seconds = 300;
  sandbox.allow_internet_access = false;
  sandbox.started_at = *base::parse_rfc3339("2026-11-29T17:46:31.120Z");
  sandbox.end_at = *base::parse_rfc3339("2026-11-29T17:51:31Z");
  sandbox.envd_token = "secret";
  sandbox.box = BoxRecord{.id = sandbox.id,
                          .init_pid = 42,
                          .init_start = 7,
                          .folder = "/f",
                          .cgroup = "/c",
                          .uid_base = 700000};
  return sandbox;
}

TEST(Records, BringsBackWhatWasSaved) {
  const base::TemporaryFolder place;
  const auto folder = place.path() / "state";
  {
    auto records = Records::open(folder);
    ASSERT_TRUE(records);
    ASSERT_TRUE(records->save(example()));
  }
  auto records = Records::open(folder);
  const auto loaded = records->load();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(to_json(loaded[0]), to_json(example()));
  records->remove(example().id);
  EXPECT_TRUE(records->load().empty());
}

TEST(Records, KeepsTokensFromOtherUsers) {
  const base::TemporaryFolder place;
  const auto folder = place.path() / "state";
  const auto records = Records::open(folder);
  ASSERT_TRUE(records->save(example()));
  struct stat about{};
  ASSERT_EQ(::stat((folder / "sandboxes" / (example().id + ".json")).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(Records, ForgetsWhatItCannotRead) {
  const base::TemporaryFolder place;
  const auto folder = place.path() / "state";
  const auto records = Records::open(folder);
  std::ofstream(folder / "sandboxes" / "ibroken.json") << "{";
  std::ofstream(folder / "sandboxes" / "iold.json") << R"({"id":"iold"})";
  EXPECT_TRUE(records->load().empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "sandboxes"));
}

TEST(Records, LetsOneServerIn) {
  const base::TemporaryFolder place;
  const auto folder = place.path() / "state";
  const auto first = Records::open(folder);
  const auto second = Records::open(folder);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kConflict);
}

}  // namespace
}  // namespace local_e2b
