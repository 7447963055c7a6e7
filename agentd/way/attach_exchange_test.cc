#include "agentd/way/attach_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "libs/base/json.h"
#include "libs/base/time.h"

namespace agentd {
namespace {

using base::Json;
using testing::HasSubstr;

const wire::SandboxName kBox{"team-a", "box"};

Json whole() {
  return {{"namespace", "team-a"},
          {"name", "box"},
          {"uid", "u1"},
          {"epoch", 2},
          {"incarnation", 3},
          {"run", 4},
          {"sandboxID", "i1"},
          {"endpoint", {{"url", "https://24984-i1.example.dev"}, {"headers", {{"X-Token", "t"}}}}},
          {"token", "sf1.c.s"},
          {"expires", "2026-11-30T12:00:00Z"}};
}

TEST(AttachAnswer, IsAWayWithAllThatOpensIt) {
  const auto answer = attach_answer({.status = 200, .body = base::to_text(whole())}, kBox);
  const auto* way = std::get_if<Way>(&answer);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->uid, "u1");
  EXPECT_EQ(way->epoch, 2);
  EXPECT_EQ(way->incarnation, 3);
  EXPECT_EQ(way->run, 4);
  EXPECT_EQ(way->url, "https://24984-i1.example.dev");
  EXPECT_THAT(way->headers, testing::ElementsAre(testing::Pair("X-Token", "t")));
  EXPECT_EQ(way->token, "sf1.c.s");
  EXPECT_EQ(base::to_rfc3339(way->expires).substr(0, 19), "2026-11-30T12:00:00");
}

struct Case {
  const char* name;
  aio::HttpReply reply;
  wire::NoEntry why;
  std::optional<base::Milliseconds> retry_after;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

aio::HttpReply refused(int status, const char* reason, aio::HttpFields fields = {}) {
  return {status, std::move(fields), base::to_text(Json{{"reason", reason}, {"message", "why"}})};
}
aio::HttpReply changed(const char* pointer, Json value) {
  Json told = whole();
  told[Json::json_pointer(pointer)] = std::move(value);
  return {200, {}, base::to_text(told)};
}
constexpr base::Seconds kSoon{1};

const Case kCases[] = {
    {"invalid", refused(400, "Invalid"), wire::NoEntry::kInvalid, {}, "why"},
    {"denied", refused(403, "Denied"), wire::NoEntry::kDenied, {}, "why"},
    {"not_found", refused(404, "NotFound"), wire::NoEntry::kNotFound, {}, "why"},
    {"paused", refused(409, "Paused"), wire::NoEntry::kPaused, {}, "why"},
    {"ended", refused(410, "Ended"), wire::NoEntry::kEnded, {}, "why"},
    {"limited", refused(429, "RateLimited", {{"retry-after", "7"}}), wire::NoEntry::kRateLimited,
     base::Seconds(7), "why"},
    {"not_ready", refused(503, "NotReady", {{"Retry-After", " 2 "}}), wire::NoEntry::kNotReady,
     base::Seconds(2), "why"},
    {"silent", refused(503, "Unavailable"), wire::NoEntry::kUnavailable, {}, "why"},
    {"long_wait", refused(503, "NotReady", {{"Retry-After", "999999999999"}}),
     wire::NoEntry::kNotReady, base::Seconds(600), "why"},
    {"a_date_to_wait_for",
     refused(503, "NotReady", {{"Retry-After", "Fri, 31 Dec 1999"}}),
     wire::NoEntry::kNotReady,
     {},
     "why"},
    {"a_word_that_nobody_knows", refused(403, "Forbidden"), wire::NoEntry::kUnavailable, kSoon,
     "403"},
    {"a_proxy_that_refuses",
     {403, {}, "<html>no</html>"},
     wire::NoEntry::kUnavailable,
     kSoon,
     "403"},
    {"a_proxy_that_redirects", {302, {}, ""}, wire::NoEntry::kUnavailable, kSoon, "302"},
    {"a_list", {200, {}, "[]"}, wire::NoEntry::kUnavailable, kSoon, "no JSON of its own"},
    {"another_sandbox", changed("/name", "other"), wire::NoEntry::kUnavailable, kSoon,
     "no whole way"},
    {"no_uid", changed("/uid", nullptr), wire::NoEntry::kUnavailable, kSoon, "no whole way"},
    {"no_run", changed("/run", 0), wire::NoEntry::kUnavailable, kSoon, "no whole way"},
    {"no_token", changed("/token", ""), wire::NoEntry::kUnavailable, kSoon, "no whole way"},
    {"no_url", changed("/endpoint/url", 7), wire::NoEntry::kUnavailable, kSoon, "no whole way"},
    {"no_end", changed("/expires", "soon"), wire::NoEntry::kUnavailable, kSoon, "no whole way"},
    {"a_header_within_a_header", changed("/endpoint/headers/X-Token", "t\r\nX-Other: 1"),
     wire::NoEntry::kUnavailable, kSoon, "no whole way"},
};

class OfAnswers : public testing::TestWithParam<Case> {};

TEST_P(OfAnswers, EachIsTakenAsWhatItIs) {
  const Case& c = GetParam();
  const auto answer = attach_answer(c.reply, kBox);
  const auto* refusal = std::get_if<NoWay>(&answer);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, c.why);
  EXPECT_EQ(refusal->retry_after, c.retry_after);
  EXPECT_THAT(refusal->message, HasSubstr(c.message));
}

INSTANTIATE_TEST_SUITE_P(, OfAnswers, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(AttachAnswer, HasNoLongAndNoManyLinedMessage) {
  const std::string body = base::to_text(
      Json{{"reason", "Denied"}, {"message", "first\nsecond " + std::string(5'000, 'x')}});
  const auto answer = attach_answer({.status = 403, .body = body}, kBox);
  const std::string& message = std::get<NoWay>(answer).message;
  EXPECT_LE(message.size(), 1'100u);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(AttachRequest, ShowsTheHarnesssTokenWhereThereIsOne) {
  const auto request = attach_request(kBox, "t0k3n", {}, "attach.svc:8443", "/prefix");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/prefix/v1/attach");
  EXPECT_EQ(Json::parse(request.body), (Json{{"namespace", "team-a"}, {"name", "box"}}));
  EXPECT_THAT(request.fields, testing::Contains(testing::Pair("Host", "attach.svc:8443")));
  EXPECT_THAT(request.fields, testing::Contains(testing::Pair("Authorization", "Bearer t0k3n")));
  for (const auto& [name, value] : attach_request(kBox, {}, {}, "attach", "").fields)
    EXPECT_NE(name, "Authorization");
}

TEST(AttachRequest, TellsWhichWayDidNotWork) {
  const auto request = attach_request(kBox, {}, RunOfWay{"u1", 2, 4}, "attach", "");
  EXPECT_EQ(Json::parse(request.body),
            (Json{{"namespace", "team-a"},
                  {"name", "box"},
                  {"failed", {{"uid", "u1"}, {"epoch", 2}, {"run", 4}}}}));
}

TEST(AttachRequest, KnowsWhatCanBeAToken) {
  EXPECT_TRUE(is_token("eyJhbGciOi.eyJhdWQi.c2ln-_"));
  for (const std::string& none : {std::string(), std::string("a b"), std::string("a\r\nX: y"),
                                  std::string("\xc3\xa9"), std::string((16u << 10) + 1, 'x')})
    EXPECT_FALSE(is_token(none)) << none.substr(0, 20);
}

}  // namespace
}  // namespace agentd
