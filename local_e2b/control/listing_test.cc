#include "local_e2b/control/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "local_e2b/control/describe.h"

namespace local_e2b {
namespace {

using ::testing::ElementsAre;

Sandbox make(const std::string& id, int second, Phase phase = Phase::kRunning,
             std::map<std::string, std::string> metadata = {}) {
  Sandbox sandbox;
  sandbox.id = id;
  sandbox.template_id = "base";
  sandbox.phase = phase;
  sandbox.metadata = std::move(metadata);
  sandbox.started_at = base::WallTime(std::chrono::seconds(second));
  return sandbox;
}

Outcome<ListQuery> query(const std::string& text) {
  return parse_list_query({.method = "GET", .target = "/v2/sandboxes?" + text});
}

std::vector<std::string> ids(const Page& page) {
  std::vector<std::string> found;
  for (const Sandbox* each : page.items) found.push_back(each->id);
  return found;
}

std::vector<const Sandbox*> pointers(const std::vector<Sandbox>& sandboxes) {
  std::vector<const Sandbox*> all;
  for (const auto& each : sandboxes) all.push_back(&each);
  return all;
}

TEST(MetadataFilter, DecodesThreeTimes) {
  // user = "a b&c", encoded twice, joined, encoded once more.
  const aio::HttpHead head{.target = "/?metadata=user%3Da%252520b%252526c"};
  EXPECT_EQ((*parse_metadata_filter(*head.query("metadata"))).at("user"), "a b&c");
  const aio::HttpHead plain{.target = "/?metadata=a%3D1%26b%3D2"};
  const auto filter = *parse_metadata_filter(*plain.query("metadata"));
  EXPECT_EQ(filter, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}));
}

TEST(MetadataFilter, RefusesStraySeparators) {
  for (const char* bad : {"a", "a=b=c", "a=1&", "=1", "a=1&&b=2", "a=%zz"})
    EXPECT_EQ(parse_metadata_filter(bad).error().status, 400) << bad;
  EXPECT_TRUE(parse_metadata_filter("")->empty());
}

TEST(ListQuery, SaysWhatIsWrong) {
  for (const char* bad :
       {"limit=0", "limit=101", "limit=x", "state=dead", "state=running,", "order=up",
        "startedAfter=yesterday", "nextToken=%21", "nextToken=e30", "metadata=a"})
    EXPECT_EQ(query(bad).error().status, 400) << bad;
}

TEST(List, ShowsWhatClientsMaySee) {
  const std::vector<Sandbox> all{
      make("starting", 1, Phase::kStarting), make("running", 2),
      make("pausing", 3, Phase::kPausing),   make("paused", 4, Phase::kPaused),
      make("resuming", 5, Phase::kResuming), make("killing", 6, Phase::kKilling)};
  const auto page = list_page(pointers(all), *query(""));
  EXPECT_THAT(ids(page), ElementsAre("resuming", "paused", "pausing", "running"));
  EXPECT_EQ(page.running, 1u);
  EXPECT_THAT(ids(list_page(pointers(all), *query("state=running"))), ElementsAre("running"));
  EXPECT_THAT(ids(list_page(pointers(all), *query("state=paused&order=asc"))),
              ElementsAre("pausing", "paused", "resuming"));
}

TEST(List, Filters) {
  const std::vector<Sandbox> all{make("a", 1, Phase::kRunning, {{"k", "v"}, {"x", "1"}}),
                                 make("b", 2, Phase::kRunning, {{"k", "v"}}), make("c", 3)};
  const auto find = [&](const std::string& text) {
    return ids(list_page(pointers(all), *query(text)));
  };
  EXPECT_THAT(find("metadata=k%3Dv"), ElementsAre("b", "a"));
  EXPECT_THAT(find("metadata=k%3Dv%26x%3D1"), ElementsAre("a"));
  EXPECT_THAT(find("metadata=k%3Dw"), ElementsAre());
  EXPECT_THAT(find("startedAfter=1970-01-01T00:00:02Z"), ElementsAre("c", "b"));
  EXPECT_THAT(find("template=base&limit=1"), ElementsAre("c"));
  EXPECT_THAT(find("template=other"), ElementsAre());
}

TEST(List, PagesThroughAllOnceInEitherOrder) {
  std::vector<Sandbox> all;
  for (int i = 0; i < 7; ++i) all.push_back(make("s" + std::to_string(i), i / 2));
  for (const std::string order : {"asc", "desc"}) {
    std::vector<std::string> seen;
    std::string token;
    for (int pages = 0; pages < 4; ++pages) {
      const auto page =
          list_page(pointers(all), *query("limit=2&order=" + order + "&nextToken=" + token));
      for (const auto& id : ids(page)) seen.push_back(id);
      EXPECT_EQ(page.running, 7u);
      token = page.next_token.value_or("");
      EXPECT_EQ(token.empty(), pages == 3);
    }
    if (order == "desc") std::reverse(seen.begin(), seen.end());
    EXPECT_THAT(seen, ElementsAre("s0", "s1", "s2", "s3", "s4", "s5", "s6"));
  }
}

TEST(List, BindsATokenToItsOrder) {
  const std::vector<Sandbox> all{make("a", 1), make("b", 2)};
  const auto page = list_page(pointers(all), *query("limit=1&order=asc"));
  EXPECT_EQ(query("order=desc&nextToken=" + *page.next_token).error().status, 400);
}

TEST(Describe, TellsPausedFromPausing) {
  const MachineSize machine{};
  EXPECT_EQ(describe_detail(make("a", 1, Phase::kPausing), machine)["state"], "paused");
  EXPECT_FALSE(describe_detail(make("a", 1, Phase::kPausing), machine).contains("pauseMode"));
  EXPECT_EQ(describe_detail(make("a", 1, Phase::kPaused), machine)["pauseMode"], "full");
}

TEST(Describe, ShowsTokensWhereTheyBelong) {
  Sandbox sandbox = make("a", 1);
  sandbox.envd_token = "secret";
  sandbox.allow_public_traffic = false;
  sandbox.traffic_token = "private";
  EXPECT_EQ(describe_handle(sandbox)["trafficAccessToken"], "private");
  EXPECT_EQ(describe_handle(sandbox)["domain"], nullptr);
  EXPECT_EQ(describe_detail(sandbox, {})["envdAccessToken"], "secret");
  EXPECT_EQ(base::to_text(describe_listed(sandbox, {})).find("secret"), std::string::npos);
}

}  // namespace
}  // namespace local_e2b
