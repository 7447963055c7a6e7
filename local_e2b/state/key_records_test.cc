#include "local_e2b/state/key_records.h"

#include <gtest/gtest.h>

#include <fstream>

#include "libs/base/testing/temporary_folder.h"
#include "libs/base/time.h"

namespace local_e2b {
namespace {

KeyRecord example() {
  return {.team = "red/../x",
          .key = "k1",
          .fingerprint = "aa",
          .at = *base::parse_rfc3339("2026-11-29T17:46:31.120Z")};
}

TEST(KeyRecords, BringBackWhatWasSaved) {
  const base::TemporaryFolder state;
  auto answered = example();
  answered.key = "k2";
  answered.reply = aio::HttpReply{.status = 500, .fields = {{"A", "b"}}, .body = "{\"x\":\"\\n\"}"};
  const auto records = KeyRecords::open(state.path());
  ASSERT_TRUE(records);
  ASSERT_TRUE(records->save(example()));
  ASSERT_TRUE(records->save(answered));
  records->remove("red", "k1");
  auto loaded = KeyRecords::open(state.path())->load();
  ASSERT_EQ(loaded.size(), 2u);
  if (loaded[0].key != "k1") std::swap(loaded[0], loaded[1]);
  EXPECT_EQ(to_json(loaded[0]), to_json(example()));
  EXPECT_EQ(to_json(loaded[1]), to_json(answered));
  records->remove(example().team, "k1");
  EXPECT_EQ(records->load().size(), 1u);
}

TEST(KeyRecords, SayWhatIsWrongWithOne) {
  const char* kBad[] = {
      R"({})",
      R"({"team":"t","key":"k","fingerprint":"f","at":"yesterday"})",
      R"({"team":"t","key":"k","fingerprint":"f","at":"2026-11-29T17:46:31Z","reply":{}})",
      R"({"team":"t","key":"k","fingerprint":"f","at":"2026-11-29T17:46:31Z",
          "reply":{"status":1,"fields":[["a"]],"body":""}})",
  };
  for (const char* bad : kBad)
    EXPECT_FALSE(key_record_from_json(*base::parse_json(bad)).ok()) << bad;
}

}  // namespace
}  // namespace local_e2b
