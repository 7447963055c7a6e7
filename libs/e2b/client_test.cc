#include "libs/e2b/client.h"

#include <gtest/gtest.h>

#include <future>

#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/time.h"
#include "libs/net/testing/fake_transport.h"

namespace e2b {
namespace {

using base::ErrorCode;
using base::Json;
using base::Seconds;
using net::Answer;
using net::answer;
using net::Request;

constexpr const char* kKey = "e2b_c4n4ry";
constexpr const char* kMade =
    R"({"sandboxID":"i1","envdVersion":"0.6.13","envdAccessToken":"envd-c4n4ry"})";
constexpr const char* kRunning =
    R"({"sandboxID":"i1","state":"running","envdVersion":"0.6.13","envdAccessToken":"envd-c4n4ry",
        "endAt":"2026-11-29T18:00:00Z"})";
constexpr const char* kUnknown = R"({"code":404,"message":"Sandbox i1 not found"})";

Answer api_error(int status, const std::string& message = "no") {
  return answer(status,
                R"({"code":)" + std::to_string(status) + R"(,"message":")" + message + "\"}");
}

// A provider as a table of routes, "METHOD path" without the query; what is not in it answers like
// a router without such a route.
struct Provider {
  std::map<std::string, Answer> routes;
  Answer operator()(const Request& request) const {
    const std::string path = request.url.substr(request.url.find('/', 8));
    const auto found = routes.find(request.method + " " + path.substr(0, path.find('?')));
    return found == routes.end() ? answer(404, "404 page not found") : found->second;
  }
};

class E2bClient : public testing::Test {
 protected:
  void provide(std::map<std::string, Answer> routes) {
    transport_.play(Provider{std::move(routes)});
  }
  static NewSandbox wanted() {
    return {
        .template_id = "base", .metadata = {{"sandfleet.uid", "u"}}, .idempotency_key = "abc123"};
  }
  std::string asked() const {
    std::vector<std::string> all;
    for (const Request& request : transport_.requests())
      all.push_back(request.method + " " + request.url.substr(request.url.find('/', 8)));
    return base::join(all, ", ");
  }
  Request last() const { return transport_.requests().back(); }

  base::FakeClock clock_;
  net::FakeTransport transport_{Provider{}};
  std::string key_ = kKey;
  Client client_{transport_, clock_, {.api_url = "http://api.test/", .api_key = [this] {
                                        return base::Result<std::string>(key_);
                                      }}};
};

// --- Create.

TEST_F(E2bClient, CreatesByVersionTwo) {
  provide({{"POST /v2/sandboxes", answer(201, kMade)}});
  const auto made = client_.create(wanted(), {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->id, "i1");
  EXPECT_EQ(made->envd_access_token, "envd-c4n4ry");
  EXPECT_EQ(asked(), "POST /v2/sandboxes");
  EXPECT_EQ(last().headers.find("X-API-Key"), kKey);
  EXPECT_EQ(last().headers.find("Idempotency-Key"), "abc123");
  EXPECT_EQ(last().headers.find("Content-Type"), "application/json");
  EXPECT_TRUE(last().fresh_connection);
  EXPECT_EQ((*base::parse_json(last().body))["templateID"], "base");
}

TEST_F(E2bClient, FallsBackToVersionOneAndRemembers) {
  for (const Answer& lacking : {answer(404, "404 page not found"), answer(405), answer(501)}) {
    net::FakeTransport transport(
        Provider{{{"POST /v2/sandboxes", lacking}, {"POST /sandboxes", answer(201, kMade)}}});
    Client client(transport, clock_, {"http://api.test", [] { return std::string(kKey); }});
    ASSERT_TRUE(client.create(wanted(), {}));
    ASSERT_TRUE(client.create(wanted(), {}));
    EXPECT_EQ(transport.count("POST", "/v2/"), 1u);
    EXPECT_EQ(transport.count("POST", "test/sandboxes"), 2u);
    EXPECT_EQ(transport.requests().back().headers.find("Idempotency-Key"), std::nullopt);
  }
}

TEST_F(E2bClient, AnUnknownTemplateIsNoLackingRoute) {
  provide({{"POST /v2/sandboxes", api_error(404, "template 'base' not found")},
           {"POST /sandboxes", answer(201, kMade)}});
  const auto made = client_.create(wanted(), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, CreateFailure::Kind::kRefused);
  EXPECT_EQ(asked(), "POST /v2/sandboxes");
}

TEST_F(E2bClient, ARouteThatOnceWorkedIsNotLackingLater) {
  provide({{"POST /v2/sandboxes", answer(201, kMade)}, {"POST /sandboxes", answer(201, kMade)}});
  ASSERT_TRUE(client_.create(wanted(), {}));
  provide({{"POST /sandboxes", answer(201, kMade)}});
  EXPECT_FALSE(client_.create(wanted(), {}));
  EXPECT_EQ(transport_.count("POST", "test/sandboxes"), 0u);
}

TEST_F(E2bClient, ACreateThatGotNoGoodAnswerIsAmbiguousUnlessUnsent) {
  using Kind = CreateFailure::Kind;
  const std::pair<Answer, Kind> rows[] = {
      {net::refused_connection(), Kind::kNotSent},
      {net::lost_answer(), Kind::kAmbiguous},
      {answer(201, "{\"sandboxI"), Kind::kAmbiguous},
      {answer(201, "{}"), Kind::kAmbiguous},
      {answer(201, ""), Kind::kAmbiguous},
      {answer(204), Kind::kAmbiguous},
      {Answer{.status = 201, .pieces = {"{"}, .end = Answer::End::kCut}, Kind::kAmbiguous},
      {answer(504, "upstream"), Kind::kAmbiguous},
      {api_error(429), Kind::kQuota},
  };
  for (const auto& [reply, kind] : rows) {
    provide({{"POST /v2/sandboxes", reply}});
    const auto made = client_.create(wanted(), {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, kind) << made.error().message;
    EXPECT_NE(made.error().message.find("create from template 'base'"), std::string::npos);
  }
}

TEST_F(E2bClient, WithoutAKeyNothingIsSent) {
  Client client(transport_, clock_, {"http://api.test", []() -> base::Result<std::string> {
                                       return base::Error{ErrorCode::kDenied, "no such Secret"};
                                     }});
  const auto made = client.create(wanted(), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, CreateFailure::Kind::kNotSent);
  EXPECT_EQ(made.error().code, ErrorCode::kDenied);
  EXPECT_EQ(client.get("i1", {}).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(transport_.requests().empty());
}

TEST_F(E2bClient, ReadsTheKeyAnewForEveryRequest) {
  provide({{"DELETE /sandboxes/i1", answer(204)}});
  ASSERT_TRUE(client_.kill("i1", {}));
  key_ = "rotated\n";
  ASSERT_TRUE(client_.kill("i1", {}));
  EXPECT_EQ(last().headers.find("X-API-Key"), "rotated");
}

// --- Look.

TEST_F(E2bClient, GetsWhatIsThereWithTheProvidersTime) {
  provide(
      {{"GET /sandboxes/i1", answer(200, kRunning, {{"Date", "Sun, 29 Nov 2026 17:46:31 GMT"}})}});
  const auto seen = client_.get("i1", {});
  ASSERT_TRUE(seen && seen->value);
  EXPECT_EQ(seen->value->state, State::kRunning);
  EXPECT_TRUE(seen->provider_time);
  EXPECT_EQ((*client_.handle("i1", {}))->envd_access_token, "envd-c4n4ry");
}

TEST_F(E2bClient, BelievesA404OnlyFromAnApi) {
  provide({{"GET /sandboxes/i1", answer(404, kUnknown)},
           {"DELETE /sandboxes/i1", answer(404, kUnknown)}});
  EXPECT_EQ(client_.get("i1", {})->value, std::nullopt);
  EXPECT_EQ(*client_.kill("i1", {}), KillAnswer::kNotThere);
  EXPECT_EQ(client_.handle("i1", {}).error().code, ErrorCode::kNotFound);
  provide({});
  EXPECT_EQ(client_.get("i1", {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client_.kill("i1", {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client_.handle("i1", {}).error().code, ErrorCode::kUnavailable);
  EXPECT_NE(client_.get("i1", {}).error().message.find("API URL"), std::string::npos);
}

TEST_F(E2bClient, HidesNoMissingToken) {
  provide({{"GET /sandboxes/i1", answer(200, R"({"sandboxID":"i1","state":"running"})")}});
  const auto handle = client_.handle("i1", {});
  ASSERT_TRUE(handle) << handle.error().message;
  EXPECT_EQ(*handle, std::nullopt);
}

TEST_F(E2bClient, EncodesAnOddId) {
  provide({{"GET /sandboxes/Ns--A_b%2F..", answer(200, R"({"sandboxID":"x","state":"running"})")}});
  EXPECT_TRUE(client_.get("Ns--A_b/..", {}));
  EXPECT_EQ(client_.get("", {}).error().code, ErrorCode::kInvalid);
}

// --- List.

std::string item(const std::string& id, const std::string& uid = "u") {
  return R"({"sandboxID":")" + id + R"(","state":"running","metadata":{"sandfleet.uid":")" + uid +
         "\"}}";
}

TEST_F(E2bClient, ListsEveryPage) {
  transport_.play([](const Request& request) {
    if (request.url.find("nextToken=two%3D") != std::string::npos)
      return answer(200, "[" + item("i2") + "," + item("i3") + "]");
    return answer(200, "[" + item("i1") + "," + item("i2") + "]",
                  {{"X-Next-Token", "two="}, {"Date", "Sun, 29 Nov 2026 17:46:31 GMT"}});
  });
  const auto all = client_.list({}, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->value.size(), 3u);
  EXPECT_TRUE(all->provider_time);
  EXPECT_EQ(asked(),
            "GET /v2/sandboxes?state=running,paused&limit=100, "
            "GET /v2/sandboxes?state=running,paused&limit=100&nextToken=two%3D");
}

TEST_F(E2bClient, ChecksTheFilterItself) {
  transport_.play([](const Request&) {
    return answer(200, "[" + item("i1", "other") + "," + item("i2", "a b&c") +
                           R"(,{"sandboxID":"i3","state":"paused"}])");
  });
  const auto some = client_.list({{{"sandfleet.uid", "a b&c"}}}, {});
  ASSERT_TRUE(some) << some.error().message;
  ASSERT_EQ(some->value.size(), 1u);
  EXPECT_EQ(some->value[0].id, "i2");
  EXPECT_TRUE(last().url.ends_with("&metadata=sandfleet.uid%3Da%252520b%252526c")) << last().url;
}

TEST_F(E2bClient, AListIsWholeOrAnError) {
  const std::pair<Answer, const char*> rows[] = {
      {answer(200, "[]", {{"X-Next-Token", "same"}}), "repeats a page token"},
      {answer(200, "{}"), "page 1: the answer is not a JSON array"},
      {answer(200, "[" + item("i1") + ",{}]"), "page 1: item 1: sandboxID is missing"},
      {answer(200, "[7]"), "item 0"},
      {answer(404, "404 page not found"), "API URL"},
      {api_error(500), "500"},
      {net::lost_answer(), "page 1"},
  };
  for (const auto& [reply, words] : rows) {
    transport_.play([&](const Request&) { return reply; });
    const auto all = client_.list({}, {});
    ASSERT_FALSE(all) << words;
    EXPECT_NE(all.error().message.find(words), std::string::npos) << all.error().message;
  }
}

TEST_F(E2bClient, BoundsTheNumberOfPages) {
  std::atomic<int> page = 0;
  transport_.play([&](const Request&) {
    return answer(200, "[]", {{"X-Next-Token", std::to_string(++page)}});
  });
  EXPECT_FALSE(client_.list({}, {}));
  EXPECT_EQ(page, kListPagesMax);
}

// --- Kill and pause.

TEST_F(E2bClient, PauseTakesBothAnswersForPaused) {
  provide({{"POST /sandboxes/i1/pause", answer(204)}});
  EXPECT_EQ(*client_.pause("i1", {}), PauseAnswer::kPaused);
  EXPECT_TRUE(last().fresh_connection);
  provide({{"POST /sandboxes/i1/pause", api_error(409, "already paused")}});
  EXPECT_EQ(*client_.pause("i1", {}), PauseAnswer::kAlreadyPaused);
}

TEST_F(E2bClient, MapsEveryRefusal) {
  struct Row {
    Answer reply;
    ErrorCode code;
  };
  const Row rows[] = {
      {api_error(400), ErrorCode::kInvalid},
      {api_error(401), ErrorCode::kDenied},
      {api_error(403), ErrorCode::kDenied},
      {answer(404, kUnknown), ErrorCode::kNotFound},
      {api_error(500), ErrorCode::kUnavailable},
      {api_error(503), ErrorCode::kUnavailable},
      {answer(302, ""), ErrorCode::kUnavailable},
      {net::lost_answer(), ErrorCode::kUnavailable},
      {answer(429, "", {{"Retry-After", "2"}}), ErrorCode::kRateLimited},
  };
  for (const Row& row : rows) {
    provide({{"POST /sandboxes/i1/pause", row.reply},
             {"POST /v2/sandboxes/i1/connect", row.reply},
             {"POST /sandboxes/i1/refreshes", row.reply}});
    EXPECT_EQ(client_.pause("i1", {}).error().code, row.code);
    EXPECT_EQ(client_.connect("i1", Seconds(60), {}).error().code, row.code);
    EXPECT_EQ(client_.extend("i1", Seconds(60), {}).error().code, row.code);
  }
  EXPECT_EQ(client_.pause("i1", {}).error().retry_after, Seconds(2));
}

TEST_F(E2bClient, BelievesThatSomethingWasDoneOnlyFromAnApi) {
  for (const char* body : {"<!DOCTYPE html><p>Welcome", "\r\n <html>"}) {
    provide({{"POST /sandboxes/i1/pause", answer(200, body)},
             {"DELETE /sandboxes/i1", answer(200, body)}});
    const auto paused = client_.pause("i1", {});
    EXPECT_EQ(paused.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(paused.error().message.find("no E2B API"), std::string::npos);
    EXPECT_EQ(client_.kill("i1", {}).error().code, ErrorCode::kUnavailable);
  }
  for (const char* body : {"", "{}", R"({"sandboxID":"i1"})", "null", "OK"}) {
    provide({{"POST /sandboxes/i1/pause", answer(200, body)},
             {"DELETE /sandboxes/i1", answer(200, body)}});
    EXPECT_EQ(*client_.pause("i1", {}), PauseAnswer::kPaused) << body;
    EXPECT_EQ(*client_.kill("i1", {}), KillAnswer::kKilled) << body;
  }
}

TEST_F(E2bClient, AKillInConflictIsToBeRepeated) {
  provide({{"DELETE /sandboxes/i1", api_error(409, "is resuming; retry")}});
  EXPECT_EQ(client_.kill("i1", {}).error().code, ErrorCode::kConflict);
}

// --- Connect.

TEST_F(E2bClient, ConnectTellsResumedFromRunning) {
  provide({{"POST /v2/sandboxes/i1/connect", answer(201, kMade)}});
  const auto resumed = client_.connect("i1", Seconds(300), {});
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(resumed->handle.envd_access_token, "envd-c4n4ry");
  EXPECT_EQ(last().body, R"({"timeout":300})");
  EXPECT_TRUE(last().fresh_connection);
  provide({{"POST /v2/sandboxes/i1/connect", answer(200, kMade)}});
  EXPECT_FALSE(client_.connect("i1", Seconds(300), {})->resumed);
  EXPECT_EQ(client_.connect("i1", Seconds(0), {}).error().code, ErrorCode::kInvalid);
}

TEST_F(E2bClient, ConnectFallsBackToVersionOneAndRemembers) {
  provide({{"POST /sandboxes/i1/connect", answer(200, kMade)}});
  ASSERT_TRUE(client_.connect("i1", Seconds(60), {}));
  ASSERT_TRUE(client_.connect("i1", Seconds(60), {}));
  EXPECT_EQ(asked(),
            "POST /v2/sandboxes/i1/connect, POST /sandboxes/i1/connect, "
            "POST /sandboxes/i1/connect");
}

TEST_F(E2bClient, ConnectFallsBackToResume) {
  provide(
      {{"POST /sandboxes/i1/resume", answer(204)}, {"GET /sandboxes/i1", answer(200, kRunning)}});
  const auto connected = client_.connect("i1", Seconds(60), {});
  ASSERT_TRUE(connected) << connected.error().message;
  EXPECT_TRUE(connected->resumed);
  EXPECT_EQ(connected->handle.envd_access_token, "envd-c4n4ry");
  ASSERT_TRUE(client_.connect("i1", Seconds(60), {}));
  EXPECT_EQ(transport_.count("POST", "/connect"), 2u);
}

TEST_F(E2bClient, ResumeOfARunningOneOnlyExtends) {
  provide({{"POST /sandboxes/i1/resume", api_error(409, "already running")},
           {"GET /sandboxes/i1", answer(200, kRunning)},
           {"POST /sandboxes/i1/refreshes", answer(204)}});
  const auto connected = client_.connect("i1", Seconds(60), {});
  ASSERT_TRUE(connected) << connected.error().message;
  EXPECT_FALSE(connected->resumed);
  EXPECT_EQ(connected->handle.id, "i1");
  EXPECT_EQ(transport_.count("POST", "/refreshes"), 1u);
}

TEST_F(E2bClient, AnUnknownSandboxIsNoLackingConnect) {
  provide({{"POST /v2/sandboxes/i1/connect", answer(404, kUnknown)}});
  EXPECT_EQ(client_.connect("i1", Seconds(60), {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(asked(), "POST /v2/sandboxes/i1/connect");
}

TEST_F(E2bClient, ServersOfOtherFormsDoNotSpoilWhatIsRemembered) {
  const Answer other = answer(404, R"({"detail":"Not Found"})");
  provide({{"POST /v2/sandboxes/i1/connect", other},
           {"POST /sandboxes/i1/connect", other},
           {"POST /sandboxes/i1/resume", other}});
  EXPECT_EQ(client_.connect("i1", Seconds(60), {}).error().code, ErrorCode::kNotFound);
  provide({{"POST /v2/sandboxes/i1/connect", answer(200, kMade)}});
  EXPECT_TRUE(client_.connect("i1", Seconds(60), {}));
}

TEST_F(E2bClient, ABrokenConnectAnswerIsAnErrorWithItsPlace) {
  for (const char* body : {"{", "[]", R"({"envdVersion":"1"})"}) {
    provide({{"POST /v2/sandboxes/i1/connect", answer(201, body)}});
    const auto connected = client_.connect("i1", Seconds(60), {});
    ASSERT_FALSE(connected) << body;
    EXPECT_EQ(connected.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(connected.error().message.find("connect i1: "), std::string::npos);
  }
}

// --- Extend.

TEST_F(E2bClient, ExtendsByRefreshes) {
  provide({{"POST /sandboxes/i1/refreshes", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(300), {}));
  EXPECT_EQ(last().body, R"({"duration":300})");
  EXPECT_EQ(asked(), "POST /sandboxes/i1/refreshes");
}

Answer running_until(const std::string& end_at) {
  return answer(200, R"({"sandboxID":"i1","state":"running","endAt":")" + end_at + "\"}",
                {{"Date", "Sun, 29 Nov 2026 17:00:00 GMT"}});
}

TEST_F(E2bClient, WithoutRefreshesItSetsATimeoutThatNeverShortens) {
  provide({{"GET /sandboxes/i1", running_until("2026-11-29T17:04:59Z")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(300), {}));
  EXPECT_EQ(last().body, R"({"timeout":300})");
  provide({{"GET /sandboxes/i1", running_until("2026-11-29T17:05:00Z")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(300), {}));
  EXPECT_EQ(transport_.count("POST", "/timeout"), 1u);
  EXPECT_EQ(transport_.count("POST", "/refreshes"), 1u);  // Remembered as missing.
}

TEST_F(E2bClient, ComparesWithItsOwnClockWhereTheProviderTellsNoTime) {
  const auto end_at = [&](Seconds left) {
    return answer(200, Json{{"sandboxID", "i1"},
                            {"state", "running"},
                            {"endAt", base::to_rfc3339(clock_.wall() + left)}}
                           .dump());
  };
  provide(
      {{"GET /sandboxes/i1", end_at(Seconds(301))}, {"POST /sandboxes/i1/timeout", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(300), {}));
  EXPECT_EQ(transport_.count("POST", "/timeout"), 0u);
  provide(
      {{"GET /sandboxes/i1", end_at(Seconds(299))}, {"POST /sandboxes/i1/timeout", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(300), {}));
  EXPECT_EQ(transport_.count("POST", "/timeout"), 1u);
}

TEST_F(E2bClient, MoreThanOneRefreshMayAskForTakesTheTimeout) {
  provide({{"POST /sandboxes/i1/refreshes", answer(204)},
           {"GET /sandboxes/i1", running_until("2026-11-29T17:05:00Z")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  ASSERT_TRUE(client_.extend("i1", Seconds(7200), {}));
  EXPECT_EQ(asked(), "GET /sandboxes/i1, POST /sandboxes/i1/timeout");
  ASSERT_TRUE(client_.extend("i1", kRefreshMax, {}));
  EXPECT_TRUE(last().url.ends_with("/refreshes"));
}

TEST_F(E2bClient, APausedOneIsNotExtendedByTheFallBackEither) {
  provide({{"GET /sandboxes/i1",
            answer(200, R"({"sandboxID":"i1","state":"paused","endAt":"2020-01-01T00:00:00Z"})")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  EXPECT_EQ(client_.extend("i1", Seconds(60), {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(transport_.count("POST", "/timeout"), 0u);
}

TEST_F(E2bClient, ExtendsWithoutBlockingThroughTheSameFallBack) {
  provide({{"GET /sandboxes/i1", running_until("2026-11-29T17:01:00Z")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  std::promise<base::Result<base::Done>> answered;
  {
    Client brief(transport_, clock_, {"http://api.test", [] { return std::string(kKey); }});
    brief.start_extend("i1", Seconds(300), [&](auto result) { answered.set_value(result); });
  }  // The callback outlives the client.
  EXPECT_TRUE(answered.get_future().get());
  EXPECT_EQ(asked(), "POST /sandboxes/i1/refreshes, GET /sandboxes/i1, POST /sandboxes/i1/timeout");
}

TEST_F(E2bClient, RefreshesWithoutAFallBackThatCouldShortenALease) {
  const auto refresh = [&](Seconds timeout) {
    std::promise<base::Result<base::Done>> answered;
    client_.start_refresh("i1", timeout, [&](auto result) { answered.set_value(result); });
    return answered.get_future().get();
  };
  provide({{"POST /sandboxes/i1/refreshes", answer(204)}});
  EXPECT_TRUE(refresh(Seconds(7200)));
  EXPECT_EQ(last().body, R"({"duration":3600})");

  Client fresh(transport_, clock_, {"http://api.test", [] { return std::string(kKey); }});
  provide({{"GET /sandboxes/i1", running_until("2026-11-29T17:01:00Z")},
           {"POST /sandboxes/i1/timeout", answer(204)}});
  std::promise<base::Result<base::Done>> answered;
  fresh.start_refresh("i1", Seconds(60), [&](auto result) { answered.set_value(result); });
  EXPECT_EQ(answered.get_future().get().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(transport_.count("POST", "/timeout"), 0u);
}

TEST_F(E2bClient, StartExtendReportsEveryFailure) {
  for (const Answer& reply : {net::lost_answer(), net::refused_connection(), api_error(409),
                              answer(404, kUnknown), answer(404, "")}) {
    provide({{"POST /sandboxes/i1/refreshes", reply}});
    std::promise<bool> answered;
    client_.start_extend("i1", Seconds(60), [&](auto result) { answered.set_value(result.ok()); });
    EXPECT_FALSE(answered.get_future().get());
  }
}

// The provider's own limits are 70 s, and 80 s for a pause: who gives up earlier leaves a sandbox
// in doubt, or destroys it.
TEST_F(E2bClient, OutlivesTheProvidersOwnLimits) {
  provide({});
  (void)client_.create(wanted(), {});
  EXPECT_GE(transport_.last_timeout(), Seconds(90));
  (void)client_.connect("i1", Seconds(60), {});
  EXPECT_GE(transport_.last_timeout(), Seconds(90));
  (void)client_.pause("i1", {});
  EXPECT_GE(transport_.last_timeout(), Seconds(90));
  (void)client_.get("i1", {});
  EXPECT_LE(transport_.last_timeout(), Seconds(30));
}

// --- Secrets.

// Every verb against every bad answer, each of which repeats the key and a token: none may come
// out.
TEST_F(E2bClient, NoErrorTellsASecret) {
  const std::string echo =
      R"({"code":CODE,"message":"bad key e2b_c4n4ry","envdAccessToken":"envd-c4n4ry"})";
  std::vector<Answer> replies = {net::lost_answer(), net::refused_connection(),
                                 answer(200, "e2b_c4n4ry"), answer(201, "[\"envd-c4n4ry\"]"),
                                 answer(302, "", {{"Location", "http://x/?k=e2b_c4n4ry"}})};
  for (int status : {200, 201, 400, 401, 403, 404, 405, 409, 422, 429, 500, 503, 504}) {
    std::string body = echo;
    replies.push_back(answer(status, body.replace(body.find("CODE"), 4, std::to_string(status))));
  }
  int errors = 0;
  const auto check = [&](const auto& result) {
    if (result) return;
    ++errors;
    EXPECT_EQ(result.error().message.find("c4n4ry"), std::string::npos) << result.error().message;
  };
  for (const Answer& reply : replies) {
    transport_.play([&](const Request&) { return reply; });
    check(client_.create(wanted(), {}));
    check(client_.get("i1", {}));
    check(client_.handle("i1", {}));
    check(client_.list({}, {}));
    check(client_.kill("i1", {}));
    check(client_.pause("i1", {}));
    check(client_.connect("i1", Seconds(60), {}));
    check(client_.extend("i1", Seconds(60), {}));
    check(client_.extend("i1", Seconds(7200), {}));
  }
  EXPECT_GT(errors, 100);
}

}  // namespace
}  // namespace e2b
