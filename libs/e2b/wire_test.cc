#include "libs/e2b/wire.h"

#include <gtest/gtest.h>

#include <sstream>

#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace e2b {
namespace {

using base::ErrorCode;
using Kind = CreateFailure::Kind;

struct CreateCase {
  const char* name;
  int status;
  std::string body;
  net::Headers headers;
  Kind kind;
  ErrorCode code;
};
void PrintTo(const CreateCase& c, std::ostream* out) { *out << c.name; }

class CreateRefusal : public testing::TestWithParam<CreateCase> {};

// I-CREATE: only these are certain; what is not in the table's definite rows is ambiguous.
TEST_P(CreateRefusal, IsDefiniteOnlyWhereItIsCertain) {
  const CreateCase& c = GetParam();
  const auto failure = create_failure_of("create", read_refusal({c.status, c.headers, c.body}), "");
  EXPECT_EQ(failure.kind, c.kind);
  EXPECT_EQ(failure.code, c.code);
  EXPECT_NE(failure.message.find(std::to_string(c.status)), std::string::npos);
}

std::string api_error(int code, const std::string& error_code = "") {
  return R"({"code":)" + std::to_string(code) + R"(,"message":"m","error_code":")" + error_code +
         R"("})";
}

const CreateCase kCreateCases[] = {
    {"400_validation", 400, api_error(400), {}, Kind::kRefused, ErrorCode::kInvalid},
    {"401_key", 401, api_error(401), {}, Kind::kRefused, ErrorCode::kDenied},
    {"402_payment", 402, "", {}, Kind::kRefused, ErrorCode::kInvalid},
    {"403_team", 403, api_error(403), {}, Kind::kRefused, ErrorCode::kDenied},
    {"404_template", 404, api_error(404), {}, Kind::kRefused, ErrorCode::kNotFound},
    {"405_route", 405, "", {}, Kind::kRefused, ErrorCode::kInvalid},
    {"408_timeout", 408, "", {}, Kind::kAmbiguous, ErrorCode::kUnavailable},
    {"409_mismatch",
     409,
     api_error(409, "idempotency_request_mismatch"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kConflict},
    {"409_in_progress",
     409,
     api_error(409, "idempotency_in_progress"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kConflict},
    {"410_retired", 410, "", {}, Kind::kRefused, ErrorCode::kInvalid},
    {"422_unknown",
     422,
     api_error(422, "idempotency_outcome_unknown"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kInvalid},
    {"429_quota", 429, api_error(429), {}, Kind::kQuota, ErrorCode::kRateLimited},
    {"429_rate", 429, api_error(429), {{"Retry-After", "3"}}, Kind::kRate, ErrorCode::kRateLimited},
    {"429_rate_odd_header",
     429,
     "",
     {{"retry-after", "soon"}},
     Kind::kRate,
     ErrorCode::kRateLimited},
    {"500_failed",
     500,
     api_error(500, "sandbox_create_failed"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kUnavailable},
    {"502_gateway", 502, "<html>", {}, Kind::kAmbiguous, ErrorCode::kUnavailable},
    {"503_capacity",
     503,
     api_error(503, "sandbox_capacity_unavailable"),
     {},
     Kind::kCapacity,
     ErrorCode::kUnavailable},
    {"503_no_node",
     503,
     api_error(503, "sandbox_no_compatible_node"),
     {},
     Kind::kCapacity,
     ErrorCode::kUnavailable},
    {"503_unconfirmed",
     503,
     api_error(503, "sandbox_filesystem_boot_unconfirmed"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kUnavailable},
    {"503_words_only",
     503,
     "sandbox_capacity_unavailable",
     {},
     Kind::kAmbiguous,
     ErrorCode::kUnavailable},
    {"503_result_unavailable", 503, api_error(503), {}, Kind::kAmbiguous, ErrorCode::kUnavailable},
    {"504_placement",
     504,
     api_error(504, "sandbox_placement_timeout"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kUnavailable},
    {"504_capacity_words",
     504,
     api_error(504, "sandbox_capacity_unavailable"),
     {},
     Kind::kAmbiguous,
     ErrorCode::kUnavailable},
    {"301_moved", 301, "", {}, Kind::kAmbiguous, ErrorCode::kUnavailable},
    {"599_unheard_of", 599, "", {}, Kind::kAmbiguous, ErrorCode::kUnavailable},
};
INSTANTIATE_TEST_SUITE_P(Wire, CreateRefusal, testing::ValuesIn(kCreateCases),
                         [](const auto& info) { return info.param.name; });

TEST(Refusal, TellsALackingRouteFromALackingThing) {
  struct Row {
    int status;
    const char* body;
    bool lacks;
  };
  const Row rows[] = {
      {404, "404 page not found", true},
      {404, "", true},
      {404, R"({"message":"Not Found"})", true},
      {404, R"({"detail":"Not Found"})", true},
      {404, R"({"code":404,"message":"no matching operation was found"})", true},
      {404, R"({"code":404,"message":"Sandbox i1 not found"})", false},
      {404, R"({"code":404,"message":"template 'x' not found"})", false},
      {405, R"({"code":405,"message":"method not allowed"})", true},
      {405, "", true},
      {501, "", true},
      {400, "", false},
      {500, "", false},
      {200, "", false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(lacks_route(read_refusal({row.status, {}, row.body})), row.lacks)
        << row.status << " " << row.body;
}

TEST(Refusal, ReadsRetryAfterAsSecondsOrDateWithinABound) {
  const auto retry_after = [](const std::string& text) {
    return read_refusal(
               {429, {{"Retry-After", text}, {"Date", "Sun, 29 Nov 2026 17:46:31 GMT"}}, ""})
        .retry_after;
  };
  EXPECT_EQ(retry_after("7"), base::Seconds(7));
  EXPECT_EQ(retry_after("-7"), base::Seconds(0));
  EXPECT_EQ(retry_after("99999999"), kRetryAfterMax);
  EXPECT_EQ(retry_after("Sun, 29 Nov 2026 17:46:41 GMT"), base::Seconds(10));
  EXPECT_EQ(retry_after("Sun, 29 Nov 2020 17:46:41 GMT"), base::Seconds(0));
  EXPECT_EQ(retry_after("soon"), std::nullopt);
}

TEST(Refusal, TamesTheProvidersWords) {
  const std::string body = R"({"code":401,"message":"key e2b_c4n4ry and e2b_c4n4ry\nline )" +
                           std::string(900, 'x') + "\"}";
  const auto error = error_of("get i1", read_refusal({401, {}, body}), "e2b_c4n4ry");
  EXPECT_EQ(error.message.find("c4n4ry"), std::string::npos);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_LT(error.message.size(), 450u);
  EXPECT_NE(error.message.find("check the provider's API key"), std::string::npos);
  // A secret that its own replacement contains.
  EXPECT_NE(error_of("x", read_refusal({401, {}, R"({"message":"hidden"})"}), "hidden")
                .message.find("<hidden>"),
            std::string::npos);
}

TEST(MetadataQuery, IsEncodedTwiceInsideAndOnceAround) {
  // The published example of the three-fold decoding.
  EXPECT_EQ(metadata_query({{"user", "a b&c"}}), "user%3Da%252520b%252526c");
  EXPECT_EQ(metadata_query({}), "");
  const std::map<std::string, std::string> odd = {
      {"a=b&c%", "\xc3\xa4 +/?#"}, {"", ""}, {"k", "%41"}};
  const auto outer = base::percent_decode(metadata_query(odd));
  ASSERT_TRUE(outer);
  std::map<std::string, std::string> decoded;
  for (const std::string& pair : base::split(*outer, '&')) {
    const auto sides = base::split(pair, '=');
    ASSERT_EQ(sides.size(), 2u);
    decoded[*base::percent_decode(*base::percent_decode(sides[0]))] =
        *base::percent_decode(*base::percent_decode(sides[1]));
  }
  EXPECT_EQ(decoded, odd);
}

TEST(CreateBody, DiffersBetweenTheVersionsInSecureAlone) {
  const NewSandbox wanted{.template_id = "base",
                          .timeout = base::Seconds(120),
                          .auto_pause = true,
                          .metadata = {{"k", "v"}},
                          .env = {{"A", "b"}}};
  auto v1 = *base::parse_json(create_body(wanted, Version::kV1));
  const auto v2 = *base::parse_json(create_body(wanted, Version::kV2));
  EXPECT_EQ(v2, *base::parse_json(R"({"templateID":"base","timeout":120,"autoPause":true,
      "metadata":{"k":"v"},"envVars":{"A":"b"}})"));
  EXPECT_EQ(v1["secure"], true);
  v1.erase("secure");
  EXPECT_EQ(v1, v2);
}

TEST(ReadInfo, ToleratesWhatServersLeaveOut) {
  const auto least = read_info_body(R"({"sandboxID":"Ns--Name_1","state":"hibernating"})");
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_EQ(least->id, "Ns--Name_1");
  EXPECT_EQ(least->state, State::kOther);
  EXPECT_EQ(least->end_at, std::nullopt);

  const auto full = read_info_body(R"({"sandboxID":"i1","state":"paused","templateID":"t",
      "metadata":{"a":"b","n":7},"startedAt":"2026-11-29T17:46:31.123456789Z","endAt":null,
      "envdVersion":"0.6.13","pauseMode":"full","unheard":{"of":[1]}})");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->state, State::kPaused);
  EXPECT_EQ(full->metadata, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(base::to_rfc3339(*full->started_at), "2026-11-29T17:46:31.123Z");
  EXPECT_EQ(full->pause_mode, "full");
}

TEST(ReadInfo, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{", "not a JSON object"},
      {R"({"state":"running"})", "sandboxID"},
      {R"({"sandboxID":7,"state":"running"})", "sandboxID"},
      {R"({"sandboxID":"i1"})", "state"},
      {R"({"sandboxID":"i1","state":"running","endAt":"tomorrow"})", "endAt"},
      {R"({"sandboxID":"i1","state":"running","startedAt":"2026-99-29T00:00:00Z"})", "startedAt"},
  };
  for (const auto& [body, word] : rows) {
    const auto info = read_info_body(body);
    ASSERT_FALSE(info) << body;
    EXPECT_NE(info.error().message.find(word), std::string::npos) << info.error().message;
    EXPECT_EQ(info.error().code, ErrorCode::kUnavailable);
  }
}

TEST(Handle, ShowsNoTokenWhenPrinted) {
  const auto handle = read_handle(R"({"sandboxID":"i1","envdVersion":"0.6.13",
      "envdAccessToken":"c4n4ry","trafficAccessToken":"c4n4ry2","domain":null})");
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->envd_access_token, "c4n4ry");
  EXPECT_EQ(handle->domain, std::nullopt);
  std::ostringstream text;
  text << *handle;
  EXPECT_EQ(text.str().find("c4n4ry"), std::string::npos) << text.str();
  EXPECT_EQ(testing::PrintToString(*handle).find("c4n4ry"), std::string::npos);
}

}  // namespace
}  // namespace e2b
