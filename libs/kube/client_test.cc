#include "libs/kube/client.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/kube/testing/fake_server.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const api::Key kKey{"team-a", "box 1"};
constexpr const char* kPath = "/apis/sandfleet.dev/v1alpha1/namespaces/team-a/sandboxes/box%201";

net::Answer json(int status, const Json& body) { return net::answer(status, base::to_text(body)); }
Json named() { return {{"metadata", {{"name", "box 1"}, {"namespace", "team-a"}}}}; }

// What was asked last, as "METHOD path?query [content type] body".
std::string asked(FakeServer& server) {
  const net::Request last = server.transport().requests().back();
  std::string text = last.method + " " + last.url.substr(std::string("https://api.test").size());
  if (const auto type = last.headers.find("Content-Type")) text += " [" + *type + "] " + last.body;
  return text;
}

// --- What goes out.

TEST(Client, WritesEachVerbAsTheServerReadsIt) {
  FakeServer server([](const net::Request&) { return json(200, named()); });
  Client& client = server.client();
  const std::string kManager = "?fieldManager=sandfleet-controller";

  EXPECT_TRUE(client.get(kSandboxes, kKey));
  EXPECT_EQ(asked(server), std::string("GET ") + kPath);
  EXPECT_TRUE(client.get(kSandboxProviders, {"", "default"}));
  EXPECT_EQ(asked(server), "GET /apis/sandfleet.dev/v1alpha1/sandboxproviders/default");
  EXPECT_TRUE(client.get(kSecrets, {"a", "b"}));
  EXPECT_EQ(asked(server), "GET /api/v1/namespaces/a/secrets/b");

  EXPECT_TRUE(client.create(kSandboxes, named(), {.dry_run = true}));
  EXPECT_EQ(
      asked(server),
      "POST /apis/sandfleet.dev/v1alpha1/namespaces/team-a/sandboxes" + kManager +
          R"(&dryRun=All [application/json] {"metadata":{"name":"box 1","namespace":"team-a"}})");
  EXPECT_TRUE(client.update(kSandboxes, named(), {"u", "7"}, {.subresource = "status"}));
  EXPECT_EQ(asked(server),
            std::string("PUT ") + kPath + "/status" + kManager +
                R"( [application/json] {"metadata":{"name":"box 1","namespace":"team-a",)"
                R"("resourceVersion":"7","uid":"u"}})");
  EXPECT_TRUE(client.patch(kSandboxes, kKey,
                           JsonPatch()
                               .test("/metadata/uid", "u")
                               .add("/status/a", 1)
                               .replace("/status/b", nullptr)
                               .remove("/status/c"),
                           {.subresource = "status"}));
  EXPECT_EQ(asked(server), std::string("PATCH ") + kPath + "/status" + kManager +
                               R"( [application/json-patch+json] )"
                               R"([{"op":"test","path":"/metadata/uid","value":"u"},)"
                               R"({"op":"add","path":"/status/a","value":1},)"
                               R"({"op":"replace","path":"/status/b","value":null},)"
                               R"({"op":"remove","path":"/status/c"}])");
  EXPECT_TRUE(client.merge(kSandboxes, kKey, {{"spec", {{"a", 1}}}}, {.resource_version = "7"}));
  EXPECT_EQ(asked(server), std::string("PATCH ") + kPath + kManager +
                               R"( [application/merge-patch+json] )"
                               R"({"metadata":{"resourceVersion":"7"},"spec":{"a":1}})");
  EXPECT_TRUE(client.fetch("/apis"));
  EXPECT_EQ(asked(server), "GET /apis");
  EXPECT_TRUE(client.apply(kSandboxes, named(), true, {.strict = true}));
  EXPECT_EQ(asked(server), std::string("PATCH ") + kPath + kManager +
                               R"(&force=true&fieldValidation=Strict )"
                               R"([application/apply-patch+yaml] )"
                               R"({"metadata":{"name":"box 1","namespace":"team-a"}})");
  EXPECT_TRUE(client.remove(kSandboxes, kKey,
                            {.preconditions = {"u", "7"},
                             .propagation = Propagation::kForeground,
                             .grace = 5s,
                             .dry_run = true}));
  EXPECT_EQ(asked(server), std::string("DELETE ") + kPath +
                               R"( [application/json] {"apiVersion":"v1","dryRun":["All"],)"
                               R"("gracePeriodSeconds":5,"kind":"DeleteOptions",)"
                               R"("preconditions":{"resourceVersion":"7","uid":"u"},)"
                               R"("propagationPolicy":"Foreground"})");
}

TEST(Client, WritesNoObjectWithoutAName) {
  FakeServer server([](const net::Request&) { return json(200, named()); });
  EXPECT_EQ(server.client().update(kSandboxes, Json::object(), {}).error().code,
            ErrorCode::kInvalid);
  EXPECT_EQ(server.client().apply(kSandboxes, Json::object(), false).error().message,
            "apply sandboxes : the object has no name");
  EXPECT_TRUE(server.transport().requests().empty());
}

TEST(Client, ListsPageByPage) {
  FakeServer server([](const net::Request&) {
    return json(
        200,
        {{"metadata", {{"resourceVersion", "42"}, {"continue", "more"}, {"remainingItemCount", 9}}},
         {"items", {{{"metadata", {{"name", "a"}}}}, 3}}});
  });
  const Scope scope{"team-a", "app in (x,y)", "spec.desiredState=Running"};
  const auto page = server.client().list(kSandboxes, scope, {.continue_token = "t/1"});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(asked(server),
            "GET /apis/sandfleet.dev/v1alpha1/namespaces/team-a/sandboxes?labelSelector="
            "app%20in%20%28x%2Cy%29&fieldSelector=spec.desiredState%3DRunning&limit=500&continue="
            "t%2F1");
  EXPECT_EQ(page->resource_version, "42");
  EXPECT_EQ(page->continue_token, "more");
  EXPECT_EQ(page->remaining, 9);
  EXPECT_THAT(page->items, ElementsAre(Json{{"apiVersion", "sandfleet.dev/v1alpha1"},
                                            {"kind", "Sandbox"},
                                            {"metadata", {{"name", "a"}}}}));

  EXPECT_TRUE(server.client().list(
      kSandboxes, {},
      {.limit = 0, .resource_version = "7", .resource_version_match = "NotOlderThan"}));
  EXPECT_EQ(asked(server),
            "GET /apis/sandfleet.dev/v1alpha1/sandboxes?resourceVersion=7&resourceVersionMatch="
            "NotOlderThan");
}

TEST(Client, TellsWhatStaysAfterADelete) {
  FakeServer server([](const net::Request&) { return net::answer(500); });
  const auto left = [&](const Json& body) {
    server.transport().play([=](const net::Request&) { return json(200, body); });
    const auto answer = server.client().remove(kSandboxes, kKey);
    EXPECT_TRUE(answer);
    return answer && (*answer).has_value();
  };
  EXPECT_FALSE(left({{"kind", "Status"}, {"status", "Success"}}));
  EXPECT_FALSE(left({{"kind", "Sandbox"}, {"metadata", {{"name", "a"}}}}));
  EXPECT_TRUE(left({{"kind", "Sandbox"}, {"metadata", {{"finalizers", {"f"}}}}}));
  EXPECT_TRUE(left({{"kind", "Pod"}, {"metadata", {{"deletionGracePeriodSeconds", 30}}}}));
}

// --- What comes back.

struct Told {
  const char* name;
  int status;
  Json body;
  Reason reason;
  ErrorCode code;
  std::string message;
};

TEST(Client, TellsRefusalsApart) {
  const auto status = [](const char* reason, const char* message, Json details = nullptr) {
    return Json{{"kind", "Status"}, {"reason", reason}, {"message", message}, {"details", details}};
  };
  const Told kCases[] = {
      {"not found", 404, status("NotFound", "sandboxes \"a\" not found"), Reason::kNotFound,
       ErrorCode::kNotFound, "404 NotFound: sandboxes \"a\" not found"},
      {"already there", 409, status("AlreadyExists", "it is there"), Reason::kAlreadyExists,
       ErrorCode::kConflict, "409 AlreadyExists: it is there"},
      {"changed meanwhile", 409, status("Conflict", "has been modified"), Reason::kConflict,
       ErrorCode::kConflict, "409 Conflict: has been modified"},
      {"fields of others", 409,
       status("Conflict", "Apply failed with 1 conflict",
              {{"causes",
                {{{"reason", "FieldManagerConflict"},
                  {"message", "conflict with \"kubectl\" using v1"},
                  {"field", ".spec.a"}}}}}),
       Reason::kConflict, ErrorCode::kConflict,
       "409 Conflict: Apply failed with 1 conflict; conflict with \"kubectl\" using v1"},
      {"no rights", 403, status("Forbidden", "may not"), Reason::kForbidden, ErrorCode::kDenied,
       "403 Forbidden: may not"},
      {"nobody", 401, status("Unauthorized", "Unauthorized"), Reason::kUnauthorized,
       ErrorCode::kDenied, "401 Unauthorized: Unauthorized"},
      {"invalid", 422,
       status("Invalid", "spec.a: too big",
              {{"causes",
                {{{"reason", "FieldValueInvalid"}, {"message", "too big"}, {"field", "spec.a"}}}}}),
       Reason::kInvalid, ErrorCode::kInvalid, "422 Invalid: spec.a: too big"},
      {"too old", 410, status("Expired", "too old resource version"), Reason::kExpired,
       ErrorCode::kConflict, "410 Expired: too old resource version"},
      {"gone", 410, status("Gone", "gone"), Reason::kExpired, ErrorCode::kConflict,
       "410 Expired: gone"},
      {"too many", 429, status("TooManyRequests", "slow down"), Reason::kTooManyRequests,
       ErrorCode::kRateLimited, "429 TooManyRequests: slow down"},
      {"a word for a time-out", 500, status("ServerTimeout", "try again"), Reason::kTimeout,
       ErrorCode::kUnavailable, "500 Timeout: try again"},
      {"a time-out", 504, status("Timeout", "gave up"), Reason::kTimeout, ErrorCode::kUnavailable,
       "504 Timeout: gave up"},
      {"an unknown word", 500, status("InternalError", "oops"), Reason::kOther,
       ErrorCode::kUnavailable, "500: oops"},
      {"an unknown word of ours", 413, status("RequestEntityTooLarge", "big"), Reason::kInvalid,
       ErrorCode::kInvalid, "413 Invalid: big"},
      {"no Status", 503, {{"hello", "there"}}, Reason::kOther, ErrorCode::kUnavailable, "503"},
  };
  FakeServer server([](const net::Request&) { return net::answer(500); });
  for (const Told& told : kCases) {
    server.transport().play([&](const net::Request&) { return json(told.status, told.body); });
    const auto answer = server.client().get(kSandboxes, kKey);
    ASSERT_FALSE(answer) << told.name;
    EXPECT_EQ(answer.error().reason, told.reason) << told.name;
    EXPECT_EQ(answer.error().code, told.code) << told.name;
    EXPECT_EQ(answer.error().status, told.status) << told.name;
    EXPECT_EQ(answer.error().message,
              "get sandboxes team-a/box 1: the API server answered " + told.message)
        << told.name;
  }
}

TEST(Client, TellsAPatchThatDoesNotFitFromAnObjectThatMayNotBe) {
  Json details = Json::object();
  FakeServer server([&](const net::Request&) {
    return json(422, {{"kind", "Status"}, {"reason", "Invalid"}, {"details", details}});
  });
  const auto reason = [&](const auto& answer) { return answer.error().reason; };
  const JsonPatch patch = JsonPatch().test("/a", 1);
  EXPECT_EQ(reason(server.client().patch(kSandboxes, kKey, patch)), Reason::kPatchUnfit);
  EXPECT_EQ(server.client().patch(kSandboxes, kKey, patch).error().code, ErrorCode::kConflict);
  EXPECT_EQ(reason(server.client().merge(kSandboxes, kKey, named(), {"u"})), Reason::kInvalid);
  details = {{"causes", {{{"field", "metadata.uid"}}}}};
  EXPECT_EQ(reason(server.client().patch(kSandboxes, kKey, patch)), Reason::kInvalid);
  EXPECT_EQ(reason(server.client().merge(kSandboxes, kKey, named(), {"u"})), Reason::kConflict);
  EXPECT_EQ(reason(server.client().merge(kSandboxes, kKey, named(), {})), Reason::kInvalid);
}

TEST(Client, BelievesA404OnlyOfAnApiServer) {
  FakeServer server([](const net::Request&) { return net::answer(404, "404 page not found\n"); });
  const auto answer = server.client().get(kSandboxes, kKey);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().status, 404);
}

TEST(Client, SaysWhenToComeBack) {
  FakeServer server([](const net::Request&) {
    return net::answer(429, R"({"kind":"Status","details":{"retryAfterSeconds":7}})");
  });
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().retry_after, 7s);
  server.transport().play(
      [](const net::Request&) { return net::answer(503, "", {{"Retry-After", "100000"}}); });
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().retry_after, 3'600s);
  server.transport().play([](const net::Request&) { return net::answer(503); });
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().retry_after, std::nullopt);
}

TEST(Client, KeepsTheCausesApart) {
  Json causes = Json::array();
  for (int i = 0; i < 30; ++i)
    causes.push_back({{"reason", "FieldValueInvalid"},
                      {"field", "spec.f" + std::to_string(i)},
                      {"message", "wrong " + std::to_string(i)}});
  FakeServer server([&](const net::Request&) {
    return json(422,
                {{"kind", "Status"}, {"reason", "Invalid"}, {"details", {{"causes", causes}}}});
  });
  const auto answer = server.client().get(kSandboxes, kKey);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().causes.size(), 20u);
  EXPECT_EQ(answer.error().causes[1], (Cause{"FieldValueInvalid", "spec.f1", "wrong 1"}));
  EXPECT_THAT(answer.error().message, HasSubstr("422 Invalid: wrong 0; wrong 1; wrong 2"));
  EXPECT_THAT(answer.error().message, Not(HasSubstr("wrong 3")));
}

TEST(Client, DoesNotTakeSilenceOrNonsenseForAnAnswer) {
  FakeServer server([](const net::Request&) { return net::refused_connection(); });
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().reason, Reason::kNoAnswer);
  EXPECT_FALSE(server.client().get(kSandboxes, kKey).error().sent);
  server.transport().play([](const net::Request&) { return net::lost_answer(); });
  EXPECT_TRUE(server.client().get(kSandboxes, kKey).error().sent);
  server.transport().play([](const net::Request&) { return net::answer(200, "<html>"); });
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().message,
            "get sandboxes team-a/box 1: the API server's answer is no JSON object");
  server.transport().play([](const net::Request&) { return net::answer(200, "{}"); });
  EXPECT_EQ(server.client().list(kSandboxes, {}, {}).error().message,
            "list sandboxes: the API server's answer has no resourceVersion");
}

// --- Watches.

constexpr const char* kAdded = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n";

struct Watched {
  Answer<base::Done> end;
  int events = 0;
};

Watched watch(FakeServer& server, int enough = 100, const WatchRequest& request = {"7"}) {
  int events = 0;
  auto end = server.client().watch(kSandboxes, {}, request,
                                   [&](WatchEvent&&) { return ++events < enough; }, {});
  return {std::move(end), events};
}

TEST(ClientWatch, HandsEventsOnAsTheyCome) {
  FakeServer server([](const net::Request&) {
    return net::Answer{.pieces = {kAdded, std::string(kAdded).substr(0, 9),
                                  std::string(kAdded).substr(9) + kAdded}};
  });
  const Watched whole = watch(server);
  EXPECT_TRUE(whole.end);
  EXPECT_EQ(whole.events, 3);
  EXPECT_EQ(asked(server),
            "GET /apis/sandfleet.dev/v1alpha1/sandboxes?watch=true&allowWatchBookmarks=true&"
            "resourceVersion=7&timeoutSeconds=300");
  const Watched enough = watch(server, 2);
  EXPECT_TRUE(enough.end);
  EXPECT_EQ(enough.events, 2);
  watch(server, 1, {.timeout = 9s, .initial_events = true});
  EXPECT_EQ(asked(server),
            "GET /apis/sandfleet.dev/v1alpha1/sandboxes?watch=true&allowWatchBookmarks=true&"
            "timeoutSeconds=9&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
}

TEST(ClientWatch, EndsWithWhatTheServerSays) {
  const std::string expired =
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
      "\n";
  const struct {
    const char* name;
    net::Answer answer;
    int events;
    Reason reason;
  } kCases[] = {
      {"an error event", {.pieces = {kAdded, expired, kAdded}}, 1, Reason::kExpired},
      {"a refusal", json(403, {{"kind", "Status"}, {"reason", "Forbidden"}}), 0,
       Reason::kForbidden},
      {"too old at once", json(410, {{"kind", "Status"}, {"reason", "Expired"}}), 0,
       Reason::kExpired},
      {"a cut", {.pieces = {kAdded}, .end = net::Answer::End::kCut}, 1, Reason::kNoAnswer},
      {"half an event", {.pieces = {kAdded, "{\"type\""}}, 1, Reason::kNoAnswer},
      {"nonsense", {.pieces = {kAdded, "<html>\n"}}, 1, Reason::kNoAnswer},
  };
  FakeServer server([](const net::Request&) { return net::answer(500); });
  for (const auto& told : kCases) {
    server.transport().play([&](const net::Request&) { return told.answer; });
    const Watched seen = watch(server);
    ASSERT_FALSE(seen.end) << told.name;
    EXPECT_EQ(seen.end.error().reason, told.reason) << told.name;
    EXPECT_EQ(seen.events, told.events) << told.name;
  }
}

TEST(ClientWatch, BoundsARefusalsBody) {
  FakeServer server([](const net::Request&) {
    return net::Answer{.status = 500,
                       .pieces = std::vector<std::string>(1'000, std::string(1'000, 'x'))};
  });
  EXPECT_EQ(watch(server).end.error().message, "watch sandboxes: the API server answered 500");
}

// --- The connection beneath.

TEST(Connection, TriesA401OnceMoreWithNewerCredentials) {
  const base::TemporaryFolder folder;
  const auto write = [&](const char* token) { std::ofstream(folder / "token") << token; };
  write("old");
  FakeServer server(
      [&](const net::Request& request) {
        const bool watching = request.url.find("watch=true") != std::string::npos;
        if (request.headers.find("Authorization") == "Bearer new")
          return watching ? net::answer(200, kAdded) : json(200, named());
        write("new");
        return net::answer(401);
      },
      {.token_file = folder / "token"});
  EXPECT_TRUE(server.client().get(kSandboxes, kKey));
  EXPECT_EQ(server.transport().requests().size(), 2u);

  write("old");
  const Watched watched = watch(server);
  EXPECT_TRUE(watched.end) << watched.end.error().message;
  EXPECT_EQ(watched.events, 1);
}

TEST(Connection, TellsA401WhenNothingIsNewer) {
  FakeServer server([](const net::Request&) { return net::answer(401, "canary"); },
                    {.token = "canary"});
  EXPECT_EQ(server.client().get(kSandboxes, kKey).error().reason, Reason::kUnauthorized);
  EXPECT_EQ(watch(server).end.error().reason, Reason::kUnauthorized);
  EXPECT_EQ(server.transport().requests().size(), 2u);
}

TEST(Connection, ShowsNoTokenThatTheServerEchoes) {
  FakeServer server(
      [](const net::Request&) {
        return json(403, {{"kind", "Status"}, {"message", "no rights for Bearer canary-token"}});
      },
      {.token = "canary-token"});
  const std::string message = server.client().get(kSandboxes, kKey).error().message;
  EXPECT_THAT(message, HasSubstr("no rights for Bearer <hidden>"));
  EXPECT_THAT(message, Not(HasSubstr("canary")));
}

TEST(Connection, MakesAnotherTransportWhenACertificateRotates) {
  const base::TemporaryFolder folder;
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
  };
  write("c", "cert-1");
  write("k", "key");
  FakeServer server([](const net::Request&) { return json(200, named()); },
                    {.certificate = {.file = folder / "c"}, .key = {.file = folder / "k"}});
  EXPECT_TRUE(server.client().get(kSandboxes, kKey));
  EXPECT_TRUE(server.client().get(kSandboxes, kKey));
  ASSERT_EQ(server.options().size(), 1u);
  EXPECT_EQ(server.options()[0].client_certificate, "cert-1");
  write("c", "cert-22");
  EXPECT_TRUE(server.client().get(kSandboxes, kKey));
  ASSERT_EQ(server.options().size(), 2u);
  EXPECT_EQ(server.options()[1].client_certificate, "cert-22");
}

TEST(Connection, CountsEveryAnswer) {
  FakeServer server([](const net::Request&) { return net::answer(503); });
  EXPECT_FALSE(server.client().get(kSandboxes, kKey));
  server.transport().play([](const net::Request&) { return net::lost_answer(); });
  EXPECT_FALSE(server.client().remove(kSandboxes, kKey));
  ASSERT_EQ(server.calls().size(), 2u);
  EXPECT_EQ(server.calls()[0].code + " " + server.calls()[0].method + " " + server.calls()[0].host,
            "503 GET api.test");
  EXPECT_EQ(server.calls()[1].code + " " + server.calls()[1].method, "<error> DELETE");
  EXPECT_TRUE(server.calls()[0].took);
  EXPECT_TRUE(server.calls()[1].path.ends_with("/sandboxes/box%201"));
  watch(server);
  EXPECT_FALSE(server.calls()[2].took);
}

}  // namespace
}  // namespace kube
