#include <gmock/gmock.h>

#include "libs/api/provider.h"
#include "libs/api/reasons.h"
#include "libs/api/sandbox.h"
#include "libs/base/time.h"

namespace api {
namespace {

using base::Json;

base::WallTime at(const char* text) { return *base::parse_rfc3339(text); }

Sandbox full_sandbox() {
  Sandbox sandbox;
  sandbox.metadata = {{"team-a", "web"},
                      "uid-1",
                      3,
                      "17",
                      {{"app", "web"}},
                      {{"note", "x"}},
                      {std::string(kFinalizer)},
                      at("2026-11-29T10:00:00Z"),
                      at("2026-11-29T11:00:00.5Z")};
  sandbox.spec.provider = "local";
  sandbox.spec.template_id = "base";
  sandbox.spec.desired_state = DesiredState::kPaused;
  sandbox.spec.deletion_policy = DeletionPolicy::kLeave;
  sandbox.spec.keep_alive = {base::Seconds(600), base::Seconds(60), OnTimeout::kKill};
  sandbox.spec.lifecycle = {base::Seconds(7200), at("2026-12-01T00:00:00Z"), base::Seconds(0)};
  sandbox.spec.env = {{"A", "1"}, {"EMPTY", ""}, {"B", {}, EnvVar::SecretKey{"keys", "b"}}};
  sandbox.spec.provider_metadata = {{"team", "a"}};
  sandbox.status.observed_generation = 3;
  sandbox.status.conditions = {
      {"Ready", "True", "Running", "all is well", 3, at("2026-11-29T10:01:00Z")}};
  sandbox.status.state = "Running";
  sandbox.status.sandbox_id = "sb-1";
  sandbox.status.epoch = 2;
  sandbox.status.incarnation = 4;
  sandbox.status.run = 5;
  sandbox.status.paused_by = PausedBy::kUser;
  sandbox.status.ended_by = EndedBy::kMaxLifetime;
  sandbox.status.endpoint_url = "http://127.0.0.1:1";
  sandbox.status.endpoint_routing = "Header";
  sandbox.status.envd_version = "0.4.0";
  sandbox.status.start_time = at("2026-11-29T10:00:30Z");
  sandbox.status.terminated_time = at("2026-11-29T10:59:30Z");
  sandbox.status.notices = {{1, at("2026-11-29T10:10:00Z"), "processes were lost"}};
  return sandbox;
}

TEST(SandboxJson, ComesBackAsItWent) {
  const auto read = sandbox_from_json(to_json(full_sandbox()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, full_sandbox());
}

TEST(SandboxJson, LeavesOutWhatIsNotSet) {
  Sandbox sandbox;
  sandbox.metadata.key = {"default", "a"};
  sandbox.spec.template_id = "base";
  EXPECT_EQ(to_json(sandbox),
            (Json{{"apiVersion", "sandfleet.dev/v1alpha1"},
                  {"kind", "Sandbox"},
                  {"metadata", {{"name", "a"}, {"namespace", "default"}, {"generation", 1}}},
                  {"spec",
                   {{"providerRef", {{"name", "default"}}},
                    {"template", {{"id", "base"}}},
                    {"desiredState", "Running"},
                    {"deletionPolicy", "Kill"},
                    {"keepAlive",
                     {{"timeoutSeconds", 300}, {"heartbeatSeconds", 30}, {"onTimeout", "Pause"}}}}},
                  {"status", {{"conditions", Json::array()}}}}));
}

TEST(SandboxJson, MissingMembersTakeTheirDefaults) {
  const auto read = sandbox_from_json({{"apiVersion", kGroupVersion},
                                       {"kind", "Sandbox"},
                                       {"metadata", {{"name", "a"}}},
                                       {"spec", {{"template", {{"id", "base"}}}}}});
  ASSERT_TRUE(read) << read.error().message;
  SandboxSpec expected;
  expected.template_id = "base";
  EXPECT_EQ(read->spec, expected);
  EXPECT_EQ(read->status, SandboxStatus{});
}

struct BadCase {
  const char* name;
  const char* pointer;
  Json value;
  const char* message;
};

TEST(SandboxJson, NamesWhatDoesNotFit) {
  const BadCase kCases[] = {
      {"unknown desired state", "/spec/desiredState", "Asleep",
       R"(spec.desiredState is "Asleep", which is none of Running, Paused, Terminated)"},
      {"unknown policy", "/spec/deletionPolicy", "kill",
       R"(spec.deletionPolicy is "kill", which is none of Kill, Pause, Leave)"},
      {"unknown timeout action", "/spec/keepAlive/onTimeout", "Leave",
       R"(spec.keepAlive.onTimeout is "Leave", which is none of Pause, Kill)"},
      {"unknown end", "/status/endedBy", "Fate",
       R"(status.endedBy is "Fate", which is none of User, ShutdownTime, MaxLifetime, Idle)"},
      {"unknown pauser", "/status/pausedBy", "Fate",
       R"(status.pausedBy is "Fate", which is none of User, Idle)"},
      {"text for a number", "/spec/keepAlive/timeoutSeconds", "300",
       "spec.keepAlive.timeoutSeconds must be a whole number"},
      {"fraction", "/spec/keepAlive/timeoutSeconds", 1.5,
       "spec.keepAlive.timeoutSeconds must be a whole number"},
      {"number for a text", "/spec/template/id", 7, "spec.template.id must be text"},
      {"text for an object", "/spec/template", "base", "spec.template must be an object"},
      {"text for a list", "/spec/env", "A=1", "spec.env must be a list"},
      {"env item", "/spec/env/0", "A=1", "spec.env[0] must be an object"},
      {"bad time", "/spec/lifecycle/shutdownTime", "tomorrow",
       R"(spec.lifecycle.shutdownTime is "tomorrow", which is not a time such as )"
       "2026-11-29T17:46:31Z"},
      {"metadata value", "/spec/providerMetadata/team", true,
       "spec.providerMetadata.team must be text"},
      {"kind", "/kind", "Pod",
       "this is \"Pod\" of \"sandfleet.dev/v1alpha1\", not Sandbox of "
       "sandfleet.dev/v1alpha1"},
      {"version", "/apiVersion", "sandfleet.dev/v9",
       "this is \"Sandbox\" of \"sandfleet.dev/v9\", not Sandbox of sandfleet.dev/v1alpha1"},
  };
  for (const BadCase& wrong : kCases) {
    SCOPED_TRACE(wrong.name);
    Json json = to_json(full_sandbox());
    json[Json::json_pointer(wrong.pointer)] = wrong.value;
    const auto read = sandbox_from_json(json);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(read.error().message, wrong.message);
  }
}

TEST(ProviderJson, ComesBackAsItWent) {
  SandboxProvider provider;
  provider.metadata.key = {"", "local"};
  provider.metadata.uid = "uid-2";
  provider.spec = {"http://127.0.0.1:3000",
                   "PEM",
                   "http://127.0.0.1:3001",
                   Routing::kPathPrefix,
                   ProviderSpec::SecretRef{"keys", "e2b"},
                   base::Seconds(5),
                   base::Seconds(30)};
  provider.status = {2, {{"Ready", "True", "Ready", "", 2, at("2026-11-29T10:00:00Z")}}};
  const auto read = provider_from_json(to_json(provider));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, provider);
}

TEST(ProviderJson, RefusesAnUnknownRouting) {
  SandboxProvider provider;
  provider.metadata.key.name = "local";
  Json json = to_json(provider);
  json["spec"]["data"]["routing"] = "Magic";
  const auto read = provider_from_json(json);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            R"(spec.data.routing is "Magic", which is none of Subdomain, Header, PathPrefix)");
}

TEST(Attempt, ComesBackFromItsAnnotation) {
  const Attempt attempt{"0123456789abcdef0123456789abcdef", 3, 2};
  Metadata metadata;
  metadata.annotations[std::string(kAttemptAnnotation)] = to_text(attempt);
  EXPECT_EQ(attempt_of(metadata), attempt);
}

TEST(Attempt, IsNothingWhenTheAnnotationIsMissingOrBroken) {
  Metadata metadata;
  EXPECT_EQ(attempt_of(metadata), std::nullopt);
  for (const char* broken :
       {"", "{", "[]", R"({"nonce":"a"})", R"({"epoch":1,"number":0})",
        R"({"nonce":"","epoch":1,"number":0})", R"({"nonce":"a","epoch":"1","number":0})"}) {
    metadata.annotations[std::string(kAttemptAnnotation)] = broken;
    EXPECT_EQ(attempt_of(metadata), std::nullopt) << broken;
  }
}

TEST(Conditions, MoveTheirTimeOnlyWithTheStatusWord) {
  std::vector<Condition> conditions;
  set_condition(conditions, {"Ready", "False", "Creating", "", 1, at("2026-11-29T10:00:00Z")});
  set_condition(conditions, {"Bound", "True", "Bound", "", 1, at("2026-11-29T10:00:01Z")});
  set_condition(conditions, {"Ready", "False", "Preparing", "x", 2, at("2026-11-29T10:00:02Z")});
  ASSERT_EQ(conditions.size(), 2u);
  EXPECT_EQ(conditions[0],
            (Condition{"Ready", "False", "Preparing", "x", 2, at("2026-11-29T10:00:00Z")}));
  set_condition(conditions, {"Ready", "True", "Running", "", 2, at("2026-11-29T10:00:03Z")});
  EXPECT_EQ(conditions[0].last_transition, at("2026-11-29T10:00:03Z"));
}

TEST(Conditions, AreFoundByType) {
  SandboxStatus status;
  EXPECT_EQ(find_condition(status, condition::kReady), nullptr);
  status.conditions = {{"Bound", "True"}, {"Ready", "False"}};
  ASSERT_NE(find_condition(status, condition::kReady), nullptr);
  EXPECT_EQ(find_condition(status, condition::kReady)->status, "False");
}

TEST(Key, PrintsTheNamespaceWhereThereIsOne) {
  EXPECT_EQ(to_text(Key{"team-a", "web"}), "team-a/web");
  EXPECT_EQ(to_text(Key{"", "local"}), "local");
}

}  // namespace
}  // namespace api
