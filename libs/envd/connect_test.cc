#include "libs/envd/connect.h"

#include <gtest/gtest.h>

#include "libs/base/crypto.h"
#include "libs/envd/sandbox.h"

namespace envd {
namespace {

using base::ErrorCode;

std::string end_envelope(std::string payload) {
  std::string bytes = encode_envelope(payload);
  bytes[0] = 2;
  return bytes;
}

TEST(Envelope, HasAFlagAndItsLengthInBigEndian) {
  EXPECT_EQ(base::to_hex(encode_envelope("{}")), "00000000027b7d");
  EXPECT_EQ(base::to_hex(encode_envelope(std::string(0x010203, 'x'))).substr(0, 10), "0000010203");
}

TEST(Envelope, IsDecodedHoweverTheBytesAreCut) {
  const std::string bytes =
      encode_envelope("one") + encode_envelope("") + encode_envelope("three") + end_envelope("{}");
  const std::vector<Envelope> wanted = {
      {false, "one"}, {false, ""}, {false, "three"}, {true, "{}"}};
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    EnvelopeDecoder decoder;
    std::vector<Envelope> got;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const auto some = decoder.add(std::string_view(bytes).substr(at, step));
      ASSERT_TRUE(some) << some.error().message;
      got.insert(got.end(), some->begin(), some->end());
    }
    EXPECT_EQ(got, wanted) << step;
  }
}

TEST(Envelope, RefusesWhatIsCompressedUnknownTooLongOrAfterTheEnd) {
  const std::string bad[] = {
      std::string("\x01\0\0\0\0", 5),
      std::string("\x80\0\0\0\0", 5),
      std::string("\0\x7f\xff\xff\xff", 5),
      end_envelope("{}") + encode_envelope("more"),
  };
  for (const std::string& bytes : bad) EXPECT_FALSE(EnvelopeDecoder().add(bytes));
  EnvelopeDecoder decoder;
  ASSERT_TRUE(decoder.add(encode_envelope(std::string(kEnvelopeBytesMax, 'x'))));
}

// Whether the message advises to check the way.
enum class Advises { kNo, kYes };

struct ErrorCase {
  const char* name;
  Side side;
  int status;
  const char* body;
  ErrorCode code;
  const char* words;
  Advises advises = Advises::kNo;
};
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.name; }

class EnvdError : public testing::TestWithParam<ErrorCase> {};

TEST_P(EnvdError, IsMappedByItsWriter) {
  const ErrorCase& c = GetParam();
  const auto error = error_of("stat /x", {c.status, {}, c.body}, c.side, "check the URL");
  EXPECT_EQ(error.code, c.code) << error.message;
  EXPECT_NE(error.message.find(c.words), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("stat /x: "), 0u);
  EXPECT_EQ(error.message.ends_with("; check the URL"), c.advises == Advises::kYes)
      << error.message;
}

constexpr Side kHealth = Side::kHealth, kFiles = Side::kFiles, kServices = Side::kServices;
const ErrorCase kErrorCases[] = {
    {"connect_not_found", kServices, 404, R"({"code":"not_found","message":"no such file"})",
     ErrorCode::kNotFound, "no such file"},
    {"connect_exists", kServices, 409, R"({"code":"already_exists"})", ErrorCode::kConflict,
     "already_exists"},
    {"connect_invalid", kServices, 400, R"({"code":"invalid_argument"})", ErrorCode::kInvalid,
     "invalid"},
    {"connect_precondition", kServices, 400, R"({"code":"failed_precondition"})",
     ErrorCode::kInvalid, "400"},
    {"connect_user", kServices, 401, R"({"code":"unauthenticated"})", ErrorCode::kDenied, "401"},
    {"connect_denied", kServices, 403, R"({"code":"permission_denied"})", ErrorCode::kDenied,
     "403"},
    {"connect_unimplemented", kServices, 501, R"({"code":"unimplemented"})", ErrorCode::kInvalid,
     "501"},
    {"connect_unavailable", kServices, 503, R"({"code":"unavailable"})", ErrorCode::kUnavailable,
     "503"},
    {"connect_exhausted", kServices, 429, R"({"code":"resource_exhausted"})",
     ErrorCode::kRateLimited, "429"},
    {"connect_internal", kServices, 500, R"({"code":"internal","message":"a\nb"})",
     ErrorCode::kUnavailable, "a b"},
    {"connect_token", kServices, 401, R"({"code":401,"message":"unauthorized"})",
     ErrorCode::kDenied, "envd answered 401"},
    {"connect_protocol", kServices, 415, "", ErrorCode::kInvalid, "envd answered 415"},
    {"rest_token", kFiles, 401, R"({"code":401,"message":"unauthorized"})", ErrorCode::kDenied,
     "401"},
    {"rest_missing", kFiles, 404, R"({"code":404,"message":"path not found"})",
     ErrorCode::kNotFound, "404"},
    {"rest_folder", kFiles, 400, R"({"code":400,"message":"is a directory"})", ErrorCode::kInvalid,
     "directory"},
    {"rest_disk_full", kFiles, 507, R"({"code":507,"message":"not enough disk"})",
     ErrorCode::kUnavailable, "not enough disk"},
    {"edge_not_running", kHealth, 502,
     R"({"sandboxId":"i1","message":"The sandbox was not found","code":502})",
     ErrorCode::kUnavailable, "sandbox i1 is not running"},
    {"edge_closed_port", kHealth, 502,
     R"({"sandboxId":"i1","message":"x","port":49983,"code":502})", ErrorCode::kUnavailable,
     "port 49983 is closed"},
    {"edge_unknown_sandbox", kHealth, 404, R"({"sandboxId":"i1","message":"x","code":404})",
     ErrorCode::kUnavailable, "not running", Advises::kYes},
    {"edge_bad_address", kHealth, 400, R"({"sandboxId":"","message":"bad port","code":400})",
     ErrorCode::kUnavailable, "the edge answered 400: sandbox : bad port", Advises::kYes},
    {"edge_traffic_token", kHealth, 403, R"({"sandboxId":"i1","message":"token","code":403})",
     ErrorCode::kDenied, "token"},
    {"edge_transition", kServices, 409,
     R"({"sandboxId":"i1","message":"transitioning","code":409})", ErrorCode::kUnavailable,
     "transitioning"},
    {"edge_connections", kFiles, 429, R"({"sandboxId":"i1","message":"many","code":429})",
     ErrorCode::kRateLimited, "many"},
    {"edge_wants_a_header", kHealth, 400, "missing header", ErrorCode::kUnavailable, "400",
     Advises::kYes},
    {"edge_in_numbers", kHealth, 400, R"({"code":400,"message":"bad host"})",
     ErrorCode::kUnavailable, "400 came back: bad host", Advises::kYes},
    {"control_plane", kServices, 404, R"({"code":404,"message":"no such route"})",
     ErrorCode::kUnavailable, "404 came back: no such route", Advises::kYes},
    {"stranger_404", kFiles, 404, "<html>nginx</html>", ErrorCode::kUnavailable, "404",
     Advises::kYes},
    {"stranger_redirect", kHealth, 301, "", ErrorCode::kUnavailable, "301", Advises::kYes},
    {"stranger_login", kHealth, 401, R"({"code":401,"message":"log in"})", ErrorCode::kUnavailable,
     "401", Advises::kYes},
    {"stranger_502", kServices, 502, "Bad Gateway", ErrorCode::kUnavailable, "502", Advises::kYes},
    {"stranger_429", kServices, 429, "slow down", ErrorCode::kRateLimited, "429", Advises::kYes},
};
INSTANTIATE_TEST_SUITE_P(All, EnvdError, testing::ValuesIn(kErrorCases),
                         [](const auto& info) { return info.param.name; });

TEST(StreamEnd, IsGoodOrAnErrorOrNonsense) {
  EXPECT_EQ(error_in_end("run", "{}"), std::nullopt);
  EXPECT_EQ(error_in_end("run", R"({"metadata":{}})"), std::nullopt);
  const auto late =
      error_in_end("run", R"({"error":{"code":"deadline_exceeded","message":"late"}})");
  ASSERT_TRUE(late);
  EXPECT_EQ(late->code, ErrorCode::kUnavailable);
  EXPECT_EQ(late->message, "run: deadline_exceeded: late");
  EXPECT_EQ(error_in_end("run", R"({"error":{"code":"invalid_argument"}})")->code,
            ErrorCode::kInvalid);
  EXPECT_TRUE(error_in_end("run", "nonsense"));
}

TEST(ProcessEvent, ReadsWhatTheDaemonLeavesOut) {
  EXPECT_EQ(read_process_event(R"({"event":{"start":{"pid":42}}})")->pid, 42u);
  const auto data =
      read_process_event(R"( {"event": {"data": {"stdout": "aGk=", "stderr": "eW8="}}})");
  EXPECT_EQ(data->output, "hi");
  EXPECT_EQ(data->error_output, "yo");
  const auto well =
      read_process_event(R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})");
  EXPECT_EQ(well->end->exit_code, 0);
  const auto badly = read_process_event(R"({"event":{"end":{"exited":true,"exitCode":7}}})");
  EXPECT_EQ(badly->end->exit_code, 7);
  const auto killed =
      read_process_event(R"({"event":{"end":{"exitCode":-1,"status":"signal: killed"}}})");
  EXPECT_EQ(killed->end->exit_code, -1);
  EXPECT_EQ(killed->end->status, "signal: killed");
  EXPECT_FALSE(read_process_event(R"({"event":{"keepalive":{}}})")->end);
  EXPECT_TRUE(read_process_event("{}"));
  for (const char* bad : {"", "[]", "{", R"({"event":{"data":{"stdout":"*"}}})"})
    EXPECT_FALSE(read_process_event(bad)) << bad;
}

TEST(Version, IsComparedByNumber) {
  EXPECT_TRUE(version_at_least("0.5.13", "0.5.7"));
  EXPECT_TRUE(version_at_least("0.5.7", "0.5.7"));
  EXPECT_TRUE(version_at_least("v1.0", "0.9.9"));
  EXPECT_TRUE(version_at_least("0.6.0-rc1", "0.6.0"));
  EXPECT_FALSE(version_at_least("0.5.6", "0.5.7"));
  EXPECT_FALSE(version_at_least("", "0.0.1"));
  EXPECT_FALSE(version_at_least("newest", "0.0.1"));
}

TEST(Route, FollowsEachOfTheThreeRoutings) {
  const auto subdomain = route_to({"https://example.dev:8443/", Routing::kSubdomain}, "i1", 49983,
                                  "envd-token", "traffic");
  EXPECT_EQ(subdomain.url, "https://49983-i1.example.dev:8443");
  EXPECT_EQ(subdomain.headers, (net::Headers{{"X-Access-Token", "envd-token"},
                                             {"E2b-Traffic-Access-Token", "traffic"}}));
  const auto header = route_to({"https://sandbox.example.dev", Routing::kHeader}, "i1", 49983,
                               "envd-token", std::nullopt);
  EXPECT_EQ(header.url, "https://sandbox.example.dev");
  EXPECT_EQ(header.headers, (net::Headers{{"E2b-Sandbox-Id", "i1"},
                                          {"E2b-Sandbox-Port", "49983"},
                                          {"X-Access-Token", "envd-token"}}));
  const auto prefix = route_to({"https://example.dev/kruise", Routing::kPathPrefix}, "Ns--n", 8080,
                               std::nullopt, std::nullopt);
  EXPECT_EQ(prefix.url, "https://example.dev/kruise/Ns--n/8080");
  EXPECT_EQ(prefix.headers, net::Headers{});
}

TEST(Route, FollowsTheDomainOfASandbox) {
  const struct {
    DataPlane plane;
    std::optional<std::string> domain;
    std::string url;
  } cases[] = {
      {{"https://example.dev:8443/x", Routing::kSubdomain}, "own.dev", "https://own.dev:8443/x"},
      {{"https://example.dev", Routing::kSubdomain}, {}, "https://example.dev"},
      {{"https://sandbox.example.dev", Routing::kHeader}, "own.dev", "https://sandbox.own.dev"},
      {{"http://127.0.0.1:3002", Routing::kHeader}, "own.dev", "http://127.0.0.1:3002"},
      {{"https://example.dev/x", Routing::kPathPrefix}, "own.dev", "https://example.dev/x"},
      {{"https://example.dev", Routing::kSubdomain}, "", "https://example.dev"},
      {{"https://example.dev", Routing::kSubdomain}, "user@evil.dev/", "https://example.dev"},
      {{"https://example.dev", Routing::kSubdomain}, ".own.dev", "https://example.dev"},
      {{"https://example.dev", Routing::kSubdomain}, std::string(254, 'a'), "https://example.dev"},
  };
  for (const auto& each : cases) {
    const DataPlane moved = in_domain(each.plane, each.domain);
    EXPECT_EQ(moved.url, each.url) << each.domain.value_or("none");
    EXPECT_EQ(moved.routing, each.plane.routing);
  }
}

// A daemon on this machine needs no edge: its own address, and headers that it does not read.
TEST(Route, ReachesALocalDaemonByHeaderRouting) {
  EXPECT_EQ(route_to({"http://localhost:49983", Routing::kHeader}, "debug", kEnvdPort, "t", {}).url,
            "http://localhost:49983");
}

TEST(Route, ShowsTheDaemonsTokenToNoOtherPort) {
  const auto route =
      route_to({"https://example.dev", Routing::kSubdomain}, "i1", 24984, "c4n4ry", "t");
  EXPECT_EQ(route.headers.find("X-Access-Token"), std::nullopt);
  EXPECT_EQ(route.headers.find("e2b-traffic-access-token"), "t");
}

}  // namespace
}  // namespace envd
