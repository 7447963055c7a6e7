#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/reach/attach_token.h"
#include "cli/resources/cluster_backend.h"
#include "cli/testing/fake_cluster.h"
#include "cli/testing/run_line.h"

// What only a cluster brings: its refusals in words, and who owns a field.
namespace cli {
namespace {

using base::ErrorCode;
using base::Json;
using testing::HasSubstr;

struct PointerCase {
  const char* field;
  const char* pointer;
};

TEST(PointerOf, FollowsTheServersWordsAsFarAsTheObjectGoes) {
  const Json object = {{"metadata", {{"labels", {{"a.b/c", "x"}, {"a", "y"}}}}},
                       {"spec", {{"env", {{{"name", "A"}}, {{"name", "B"}, {"value", "1"}}}}}}};
  const PointerCase cases[] = {
      {"spec.env[1].value", "/spec/env/1/value"},
      {".spec.env[name=\"B\"].value", "/spec/env/1/value"},
      {".spec.env[name=\"C\"].value", "/spec/env"},
      {"spec.env[7].value", "/spec/env"},
      {"spec.template.id", "/spec"},
      {".metadata.labels.a.b/c", "/metadata/labels/a.b~1c"},
      {"metadata.labels[a.b/c]", "/metadata/labels/a.b~1c"},
      {".metadata.labels.a", "/metadata/labels/a"},
      {"spec.env[", "/spec/env"},
      {"<nil>", ""},
      {"", ""},
  };
  for (const auto& each : cases) EXPECT_EQ(pointer_of(each.field, object), each.pointer);
}

constexpr const char* kDemo =
    "apiVersion: sandfleet.dev/v1alpha1\n"
    "kind: Sandbox\n"
    "metadata: {name: demo}\n"
    "spec:\n"
    "  template: {id: base}\n"
    "  desiredState: Running\n";

// A person and a cluster in memory.
class ClusterTest : public testing::Test {
 protected:
  int type(const std::vector<std::string>& line, const std::string& piped = "") {
    out_.str("");
    err_.str("");
    std::istringstream in(piped);
    ClusterBackend backend(client_, cluster_.clock(),
                           [this](const std::string& news) { err_ << news << "\n"; });
    const Terminal terminal{out_, err_, in, cluster_.clock()};
    return run_line(line, backend, terminal);
  }
  Json demo() { return cluster_.find(kube::kSandboxes, {"default", "demo"}); }
  std::size_t asked(const char* method, const char* part) {
    return cluster_.server().transport().count(method, part);
  }

  FakeCluster cluster_;
  kube::Client client_{cluster_.server().connection(), {.field_manager = kFieldManager}};
  std::ostringstream out_, err_;
};

TEST_F(ClusterTest, AsksOnlyForWhatIsNamed) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone) << err_.str();
  EXPECT_EQ(out_.str(), "sandbox/demo applied in namespace default\n");
  // The object as written, with the namespace: nobody owns a default.
  const auto sent = base::parse_json(cluster_.server().transport().requests().back().body);
  ASSERT_TRUE(sent);
  EXPECT_EQ(*sent, (Json{{"apiVersion", "sandfleet.dev/v1alpha1"},
                         {"kind", "Sandbox"},
                         {"metadata", {{"name", "demo"}, {"namespace", "default"}}},
                         {"spec", {{"template", {{"id", "base"}}}, {"desiredState", "Running"}}}}));
  cluster_.refuse("GET https://api.test/apis/sandfleet.dev/v1alpha1/namespaces/default/sandboxes?",
                  status_answer(403, "Forbidden", "no list"));
  EXPECT_EQ(type({"get", "demo"}), kDone) << "to get one is another right than to list";
  EXPECT_EQ(type({"get"}), kRefused);
}

TEST_F(ClusterTest, WritesOnlyTheWordThatIsMeantAndOnlyToTheObjectThatWasSeen) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  ASSERT_EQ(type({"pause", "demo"}), kDone) << err_.str();
  EXPECT_EQ(out_.str(), "sandbox/demo desiredState Paused in namespace default\n");
  const auto request = cluster_.server().transport().requests().back();
  EXPECT_THAT(request.url, HasSubstr("fieldManager=sandfleet-cli"));
  EXPECT_EQ(*base::parse_json(request.body),
            (Json{{"metadata", {{"uid", demo()["metadata"]["uid"]}}},
                  {"spec", {{"desiredState", "Paused"}}}}));

  // Between look and write it was deleted and made anew.
  const auto seen = *api::sandbox_from_json(demo());
  cluster_.drop(kube::kSandboxes, seen.metadata.key);
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  ClusterBackend backend(client_, cluster_.clock(), [](const std::string&) {});
  EXPECT_EQ(backend.set_desired_state(seen, api::DesiredState::kTerminated).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(backend.remove(seen, {}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(demo()["spec"]["desiredState"], "Running");
}

TEST_F(ClusterTest, AsksForATokenThatIsGoodForAttachingAlone) {
  const std::string path = "POST https://api.test/api/v1/namespaces/team/serviceaccounts/me/token";
  cluster_.refuse(path, net::answer(201, R"({"status":{"token":"t0ken"}})"));
  const auto token = request_attach_token(client_, "team", "me");
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(*token, "t0ken");
  const auto sent = base::parse_json(cluster_.server().transport().requests().back().body);
  EXPECT_EQ((*sent)["kind"], "TokenRequest");
  EXPECT_EQ((*sent)["spec"], (Json{{"audiences", {"sandfleet.dev/attach"}}}));

  cluster_.refuse(path, net::answer(201, "{}"));
  EXPECT_EQ(request_attach_token(client_, "team", "me").error().code, ErrorCode::kUnavailable);
  cluster_.refuse(path, status_answer(403, "Forbidden", "no token"));
  EXPECT_EQ(request_attach_token(client_, "team", "me").error().code, ErrorCode::kDenied);
}

TEST_F(ClusterTest, NamesTheNamespaceThatIsNotThere) {
  EXPECT_EQ(type({"get", "-n", "gone"}), kNotFound);
  EXPECT_EQ(err_.str(), "sandfleet: there is no namespace \"gone\"\n");
  EXPECT_EQ(type({"pause", "demo", "-n", "gone"}), kNotFound);
  EXPECT_EQ(err_.str(), "sandfleet: there is no namespace \"gone\"\n");
  EXPECT_EQ(type({"apply", "-f", "-", "-n", "gone"}, kDemo), kNotFound);
  EXPECT_EQ(err_.str(),
            "sandfleet: there is no namespace \"gone\"; create it (kubectl create namespace gone), "
            "or name another with -n\n");
  cluster_.refuse("/api/v1/namespaces/gone", status_answer(403, "Forbidden", "no"));
  EXPECT_EQ(type({"get", "-n", "gone"}), kDone) << "who may not look learns nothing";
  EXPECT_EQ(err_.str(), "No resources found.\n");
}

TEST_F(ClusterTest, DescribesWithoutTheEventsThatOneMayNotSee) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  cluster_.refuse("/events", status_answer(403, "Forbidden", "no events for you"));
  EXPECT_EQ(type({"describe", "demo"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("Events:           could not be read\n"));
  EXPECT_THAT(err_.str(), HasSubstr("warning: list events: "));
  EXPECT_EQ(type({"events"}), kRefused);
}

TEST_F(ClusterTest, ShowsWhatItCanReadAndNamesTheRest) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  Json strange = demo();
  strange["metadata"]["name"] = "strange";
  strange["spec"]["desiredState"] = "Dreaming";
  cluster_.write(kube::kSandboxes, strange);
  EXPECT_EQ(type({"get"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\ndemo "));
  EXPECT_THAT(err_.str(), HasSubstr("warning: default/strange is not shown, for this program "
                                    "cannot read it: "));
  EXPECT_THAT(err_.str(), HasSubstr("Dreaming"));
  EXPECT_EQ(type({"pause", "strange"}), kFailed);
}

TEST_F(ClusterTest, ShowsViolationsByLineAndFieldWithTheCure) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  std::string other(kDemo);
  other.replace(other.find("base"), 4, "else");
  EXPECT_EQ(type({"apply", "-f", "-"}, other), kFailed);
  EXPECT_EQ(err_.str(),
            "sandfleet: stdin.yaml:5:13: spec.template: template cannot be changed; put the old "
            "value back, or declare another object\n");
  EXPECT_EQ(demo()["spec"]["template"]["id"], "base");
}

net::Answer conflict_with(const std::string& manager) {
  return status_answer(
      409, "Conflict", "Apply failed with 1 conflict",
      {{{"reason", "FieldManagerConflict"},
        {"field", ".spec.desiredState"},
        {"message", "conflict with \"" + manager + "\" using sandfleet.dev/v1alpha1"}}});
}

TEST_F(ClusterTest, ShowsWhoOwnsAFieldAndTakesItOnlyByForce) {
  cluster_.refuse("fieldManager=sandfleet-cli&fieldValidation", conflict_with("kubectl-edit"));
  EXPECT_EQ(type({"apply", "-f", "-"}, kDemo), kRefused);
  EXPECT_EQ(
      err_.str(),
      "sandfleet: stdin.yaml:6:17: spec.desiredState: is set by \"kubectl-edit\"; take it out "
      "of the manifest to leave it to them, or apply with --force-conflicts to take it "
      "over\n");
  EXPECT_EQ(asked("PATCH", "force=true"), 0u);
  EXPECT_EQ(type({"apply", "-f", "-", "--force-conflicts"}, kDemo), kDone) << err_.str();
}

TEST_F(ClusterTest, TakesBackWhatItSetItself) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  const auto version = demo()["metadata"]["resourceVersion"];
  cluster_.refuse("fieldManager=sandfleet-cli&fieldValidation", conflict_with(kFieldManager));
  EXPECT_EQ(type({"apply", "-f", "-"}, kDemo), kDone) << err_.str();
  EXPECT_EQ(asked("PATCH", "force=true"), 1u);
  const auto forced = base::parse_json(cluster_.server().transport().requests().back().body);
  EXPECT_EQ((*forced)["metadata"]["resourceVersion"], version);
}

TEST_F(ClusterTest, SaysThatDefinitionsAreOlder) {
  // Our reader knows the field, this cluster does not.
  cluster_.refuse("PATCH", status_answer(500, "",
                                         "failed to create typed patch object: "
                                         ".spec.desiredState: field not declared in "
                                         "schema"));
  EXPECT_EQ(type({"apply", "-f", "-"}, kDemo), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml:6:17: spec.desiredState: is not known to this "
                                    "cluster; its definitions are older than this program: "
                                    "install the chart"));
}

TEST_F(ClusterTest, TakesAServersTroubleWithATypeForWhatItIs) {
  // Our reader has no doubt, so the server's words must do.
  cluster_.refuse("PATCH", status_answer(500, "",
                                         "failed to create typed patch object: "
                                         ".spec.template.id: expected numeric"));
  EXPECT_EQ(type({"apply", "-f", "-"}, kDemo), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml:1:1: apply sandboxes default/demo: the API server "
                                    "answered 500: failed to create typed patch object"));
}

TEST_F(ClusterTest, RefusesWhatCannotBeSent) {
  EXPECT_EQ(type({"apply", "-f", "-"}, "a: ["), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml:1:"));
  EXPECT_EQ(type({"apply", "-f", "-"}, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"),
            kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml:2:7: kind: \"Pod\" is no kind that is read here"));
  EXPECT_EQ(type({"apply", "-f", "-"},
                 "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nspec: {template: {id: a}}\n"),
            kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("metadata.name: "));
  EXPECT_EQ(type({"apply", "-f", "-"}, "# nothing\n"), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml declares no object"));
  EXPECT_EQ(asked("PATCH", ""), 0u);
}

TEST_F(ClusterTest, EndsAListThatNeverEnds) {
  cluster_.refuse("/sandboxes?limit",
                  net::answer(200, R"({"metadata":{"resourceVersion":"1","continue":"more"},)"
                                   R"("items":[]})"));
  EXPECT_EQ(type({"get"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("more than 2000 pages"));
  EXPECT_EQ(asked("GET", "/sandboxes?"), static_cast<std::size_t>(kPagesMax));
}

TEST_F(ClusterTest, ListsWholeWhenAPageCameTooLate) {
  ASSERT_EQ(type({"apply", "-f", "-"}, kDemo), kDone);
  cluster_.refuse("sandboxes?limit=500", status_answer(410, "Expired", "too old"));
  EXPECT_EQ(type({"get"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\ndemo "));
}

}  // namespace
}  // namespace cli
