#include "executor/files/download_plan.h"

#include <gtest/gtest.h>

#include <ostream>

namespace executor {

void PrintTo(const DownloadPlan& plan, std::ostream* out) {
  *out << plan.status << " at " << plan.offset << " for " << plan.length
       << (plan.gzip ? " gzip" : "");
}

namespace {

const FileFacts kFile{1000, base::WallTime(base::Milliseconds(1'795'976'791'500)), "\"e1\""};
constexpr const char* kItsDate = "Sun, 29 Nov 2026 18:26:31 GMT";
constexpr const char* kBefore = "Sun, 29 Nov 2026 18:26:30 GMT";
const DownloadPlan kWhole{200, 0, 1000};

TEST(DownloadPlan, AnswersEachHeader) {
  const struct {
    const char* name;
    DownloadAsk ask;
    DownloadPlan wanted;
  } cases[] = {
      {"plain", {}, kWhole},
      {"gzip", {.accept_encoding = "gzip, deflate, br"}, {200, 0, 1000, true}},
      {"gzip_refused", {.accept_encoding = "gzip;q=0"}, kWhole},
      {"gzip_low", {.accept_encoding = "br, gzip;q=0.1"}, {200, 0, 1000, true}},
      {"identity_refused", {.accept_encoding = "gzip, identity;q=0"}, {200, 0, 1000, true}},
      {"nothing_left", {.accept_encoding = "br, identity;q=0"}, {.status = 406}},
      {"star_refused", {.accept_encoding = "*;q=0"}, {.status = 406}},
      {"first_ten", {.range = "bytes=0-9"}, {206, 0, 10}},
      {"range_beats_gzip", {.accept_encoding = "gzip", .range = "bytes=0-9"}, {206, 0, 10}},
      {"from_there", {.range = "bytes=990-"}, {206, 990, 10}},
      {"past_the_end", {.range = "bytes=990-5000"}, {206, 990, 10}},
      {"last_five", {.range = "bytes=-5"}, {206, 995, 5}},
      {"last_of_all", {.range = "bytes=-5000"}, {206, 0, 1000}},
      {"unsatisfiable", {.range = "bytes=1000-"}, {.status = 416}},
      {"last_none", {.range = "bytes=-0"}, {.status = 416}},
      {"backwards", {.range = "bytes=9-0"}, kWhole},
      {"several", {.range = "bytes=0-1,4-5"}, kWhole},
      {"other_unit", {.range = "lines=0-1"}, kWhole},
      {"garbage", {.range = "bytes=a-b"}, kWhole},
      {"if_range_tag", {.range = "bytes=0-9", .if_range = "\"e1\""}, {206, 0, 10}},
      {"if_range_old_tag", {.range = "bytes=0-9", .if_range = "\"e0\""}, kWhole},
      {"if_range_date", {.range = "bytes=0-9", .if_range = kItsDate}, {206, 0, 10}},
      {"none_match", {.if_none_match = "\"e0\", W/\"e1\""}, {.status = 304}},
      {"none_match_other", {.if_none_match = "\"e0\""}, kWhole},
      {"match", {.if_match = "\"e1\""}, kWhole},
      {"match_other", {.if_match = "\"e0\""}, {.status = 412}},
      {"modified_since", {.if_modified_since = kItsDate}, {.status = 304}},
      {"modified_since_before", {.if_modified_since = kBefore}, kWhole},
      {"unmodified_since", {.if_unmodified_since = kItsDate}, kWhole},
      {"unmodified_since_before", {.if_unmodified_since = kBefore}, {.status = 412}},
      {"bad_date", {.if_modified_since = "yesterday"}, kWhole},
  };
  for (const auto& test : cases)
    EXPECT_EQ(plan_download(test.ask, kFile), test.wanted) << test.name;
}

TEST(DownloadPlan, AnEmptyFileHasNoRange) {
  const FileFacts empty{0, kFile.modified, "\"e1\""};
  EXPECT_EQ(plan_download({.range = "bytes=0-"}, empty).status, 416);
  EXPECT_EQ(plan_download({}, empty), (DownloadPlan{200, 0, 0}));
}

TEST(DownloadPlan, NamesTypesAndFiles) {
  EXPECT_EQ(content_type_of("a.HTML"), "text/html; charset=utf-8");
  EXPECT_EQ(content_type_of("a.unheard-of"), "application/octet-stream");
  EXPECT_EQ(content_type_of("README"), "application/octet-stream");
  EXPECT_EQ(content_disposition("a b.txt"), "inline; filename=\"a b.txt\"");
  EXPECT_EQ(content_disposition("\xc3\xa9\".txt"),
            "inline; filename=\"___.txt\"; filename*=UTF-8''%C3%A9%22.txt");
}

}  // namespace
}  // namespace executor
