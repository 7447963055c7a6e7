#include "libs/kube/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kube/right.h"
#include "libs/kube/testing/fake_server.h"

namespace kube {
namespace {

using base::ErrorCode;
using base::Json;

const Config kConfig{.cluster = {"https://api.test:6443"}, .source = "context dev of F"};

Refusal refused(int status, Reason reason, ErrorCode code, const std::string& message) {
  Refusal refusal{{code, "list sandboxes: " + message}};
  refusal.status = status;
  refusal.reason = reason;
  return refusal;
}

struct ExplainCase {
  const char* name;
  Refusal refusal;
  const char* says;
};

TEST(Explain, SaysWhatToDo) {
  const ExplainCase cases[] = {
      {"away", refused(0, Reason::kNoAnswer, ErrorCode::kUnavailable, "connection refused"),
       "list sandboxes: connection refused; see that the cluster is up, and that "
       "https://api.test:6443 is its address (from context dev of F)"},
      {"another_authority",
       refused(0, Reason::kNoAnswer, ErrorCode::kUnavailable, "SSL certificate problem"),
       "list sandboxes: SSL certificate problem; see that the certificate authority in context dev "
       "of F is that of https://api.test:6443"},
      {"no_plugin",
       refused(0, Reason::kNoAnswer, ErrorCode::kUnavailable,
               "the credential plugin gke is not there"),
       "list sandboxes: the credential plugin gke is not there"},
      {"no_token", refused(0, Reason::kNoAnswer, ErrorCode::kInvalid, "F holds no token"),
       "list sandboxes: F holds no token"},
      {"stranger", refused(401, Reason::kUnauthorized, ErrorCode::kDenied, "Unauthorized"),
       "list sandboxes: Unauthorized; the cluster does not know you by context dev of F: log in "
       "again, or renew the token or certificate there"},
      {"in_a_namespace",
       refused(403, Reason::kForbidden, ErrorCode::kDenied,
               "User \"bob\" cannot list resource \"sandboxes\" in API group \"sandfleet.dev\" in "
               "the namespace \"team\""),
       "the right to list sandboxes.sandfleet.dev in namespace team is missing: ask for a role "
       "that has it, and see with 'kubectl auth can-i list sandboxes.sandfleet.dev -n team'"},
      {"in_the_cluster",
       refused(403, Reason::kForbidden, ErrorCode::kDenied,
               "User \"bob\" cannot get resource \"namespaces\" in API group \"\" at the cluster "
               "scope"),
       "the right to get namespaces in the whole cluster is missing: ask for a role that has it, "
       "and see with 'kubectl auth can-i get namespaces --all-namespaces'"},
      {"of_a_subresource",
       refused(403, Reason::kForbidden, ErrorCode::kDenied,
               "User \"bob\" cannot patch resource \"sandboxes/status\" in API group "
               "\"sandfleet.dev\" in the namespace \"team\""),
       "the right to patch sandboxes.sandfleet.dev/status in namespace team is missing: ask for a "
       "role that has it, and see with 'kubectl auth can-i patch sandboxes.sandfleet.dev "
       "--subresource=status -n team'"},
      {"by_a_webhook", refused(403, Reason::kForbidden, ErrorCode::kDenied, "not on Sundays"),
       "list sandboxes: not on Sundays; ask whoever rules the cluster for that right"},
      {"changed", refused(409, Reason::kConflict, ErrorCode::kConflict, "the UID does not match"),
       "it changed meanwhile: look again, and repeat if you still mean it"},
      {"late", refused(504, Reason::kTimeout, ErrorCode::kUnavailable, "gave up"),
       "it may have been done all the same: look before you repeat it"},
      {"busy", refused(429, Reason::kTooManyRequests, ErrorCode::kRateLimited, "too many"),
       "list sandboxes: too many; try again later"},
      {"broken", refused(500, Reason::kOther, ErrorCode::kUnavailable, "etcd is gone"),
       "list sandboxes: etcd is gone"},
  };
  for (const auto& each : cases) {
    const auto told = explain(each.refusal, kConfig);
    EXPECT_THAT(told.message, testing::EndsWith(each.says)) << each.name;
    EXPECT_EQ(told.code, each.refusal.code) << each.name;
  }
}

struct UnservedCase {
  const char* name;
  Answer<Json> groups;
  const char* says;
};

TEST(Explain, TellsMissingDefinitionsFromOtherVersionsAndOtherServers) {
  const auto serving = [](std::initializer_list<const char*> versions) {
    Json served = Json::array();
    for (const char* each : versions) served.push_back({{"version", each}});
    return Json{
        {"groups", {{{"name", "apps"}}, {{"name", "sandfleet.dev"}, {"versions", served}}}}};
  };
  const auto foreign = refused(404, Reason::kOther, ErrorCode::kUnavailable, "a 404 of somebody's");
  const UnservedCase cases[] = {
      {"none", Json{{"groups", {{{"name", "apps"}}}}},
       "the cluster at https://api.test:6443 has no definition of Sandbox (sandfleet.dev); install "
       "the chart (helm install sandfleet charts/sandfleet), or the definitions alone (kubectl "
       "apply -f crds/)"},
      {"others", serving({"v1", "v1beta1"}),
       "the cluster serves sandfleet.dev as v1, v1beta1, and this program speaks v1alpha1; use the "
       "sandfleet of that release, or install the chart"},
      {"some", serving({"v1alpha1"}),
       "list sandboxes: the cluster has only some of the definitions of sandfleet.dev; install"},
      {"another_server", foreign,
       "https://api.test:6443 answers, but it is no Kubernetes API server; correct the server in "
       "context dev of F"},
      {"another_json", Json{{"hello", "world"}}, "https://api.test:6443 answers, but it is no"},
      {"gone", refused(0, Reason::kNoAnswer, ErrorCode::kUnavailable, "reset"),
       "list sandboxes: reset; see that the cluster is up"},
  };
  EXPECT_TRUE(is_unserved(foreign));
  EXPECT_FALSE(is_unserved(refused(404, Reason::kNotFound, ErrorCode::kNotFound, "no a")));
  for (const auto& each : cases)
    EXPECT_THAT(explain_unserved(foreign, kConfig, each.groups).message,
                testing::StartsWith(each.says))
        << each.name;
}

TEST(Explain, AsksWhatIsServedOnlyWhereThatIsTheQuestion) {
  FakeServer server([](const net::Request& request) {
    EXPECT_EQ(request.url, "https://api.test/apis");
    return net::answer(200, R"({"groups": []})");
  });
  const auto away = refused(0, Reason::kNoAnswer, ErrorCode::kUnavailable, "connection refused");
  EXPECT_THAT(explained(away, server.client()).message, testing::HasSubstr("the cluster is up"));
  EXPECT_TRUE(server.transport().requests().empty());
  const auto foreign = refused(404, Reason::kOther, ErrorCode::kUnavailable, "a 404 of somebody's");
  EXPECT_THAT(explained(foreign, server.client()).message,
              testing::HasSubstr("has no definition of Sandbox"));
}

TEST(Right, IsNamedAsPeopleWouldAskForIt) {
  const Right status{"patch", "sandfleet.dev", "sandboxes", "status", "team"};
  EXPECT_EQ(to_text(status), "patch sandboxes.sandfleet.dev/status in namespace team");
  EXPECT_EQ(can_i(status),
            "kubectl auth can-i patch sandboxes.sandfleet.dev --subresource=status -n team");
  const Right system{.verb = "get", .group = "", .resource = "namespaces", .name = "kube-system"};
  EXPECT_EQ(to_text(system), "get namespaces kube-system in the whole cluster");
  EXPECT_EQ(can_i(system), "kubectl auth can-i get namespaces/kube-system --all-namespaces");
}

TEST(Right, IsThereWhenTheServerSaysSo) {
  std::string answer;
  FakeServer server([&](const net::Request&) { return net::answer(201, answer); });
  const Right right{"get", "", "secrets", "", "own"};
  const std::pair<const char*, bool> cases[] = {
      {R"({"status": {"allowed": true}})", true},
      {R"({"status": {"allowed": false}})", false},
      {R"({"status": {"allowed": false, "evaluationError": "no such role"}})", false},
      {R"({})", false},
  };
  for (const auto& [text, allowed] : cases) {
    answer = text;
    const auto told = may(server.client(), right, {});
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(*told, allowed) << text;
  }
  const Json asked = *base::parse_json(server.transport().requests().front().body);
  EXPECT_EQ(asked["spec"]["resourceAttributes"], (Json{{"verb", "get"},
                                                       {"group", ""},
                                                       {"resource", "secrets"},
                                                       {"subresource", ""},
                                                       {"namespace", "own"},
                                                       {"name", ""}}));
}

}  // namespace
}  // namespace kube
