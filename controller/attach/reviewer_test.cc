#include "controller/attach/reviewer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/kube/testing/fake_server.h"
#include "libs/wire/attach.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;
using testing::HasSubstr;
using testing::Not;

const api::Key kBox{"team-a", "box"};

// What the API server makes of each review.
struct Answers {
  int status = 201;
  Json review;
};

template <typename Result>
struct Asked {
  Result result;
  std::string url;
  Json body;
};

// Asks by `ask` of a reviewer whose API server answers so.
template <typename Ask>
auto asked_of(const Answers& answers, const Ask& ask) {
  kube::FakeServer server(
      [&](const net::Request&) { return net::answer(answers.status, answers.review.dump()); });
  ClusterReviewer reviewer(server.client());
  auto result = ask(reviewer);
  const auto asked = server.transport().requests().back();
  return Asked<decltype(result)>{std::move(result), asked.url, Json::parse(asked.body)};
}

Asked<base::Result<Caller>> identified(const Answers& answers) {
  return asked_of(answers,
                  [](ClusterReviewer& reviewer) { return reviewer.identify("c4n4ry", {}); });
}

Asked<base::Result<base::Done>> allowed(const Answers& answers) {
  return asked_of(answers, [](ClusterReviewer& reviewer) {
    return reviewer.allow({.name = "system:serviceaccount:team-a:harness",
                           .uid = "u1",
                           .groups = {"g1", "g2"},
                           .extra = {{"pod", {"p"}}}},
                          kBox, {});
  });
}

// What the API server answers, and what comes of it.
struct Refusal {
  const char* name;
  Answers answers;
  ErrorCode code;
  const char* message;
};

template <typename Review>
void expect_refusals(const std::vector<Refusal>& refusals, const Review& review) {
  for (const Refusal& each : refusals) {
    const auto asked = review(each.answers);
    ASSERT_FALSE(asked.result) << each.name;
    EXPECT_EQ(asked.result.error().code, each.code) << each.name;
    EXPECT_THAT(asked.result.error().message, HasSubstr(each.message)) << each.name;
    EXPECT_THAT(asked.result.error().message, Not(HasSubstr("c4n4ry"))) << each.name;
  }
}

Json token_review(Json status) { return {{"kind", "TokenReview"}, {"status", std::move(status)}}; }
Json access_review(Json status) {
  return {{"kind", "SubjectAccessReview"}, {"status", std::move(status)}};
}

TEST(Reviewer, AsksWhoATokenIsForOurAudience) {
  const auto asked = identified({201, token_review({{"authenticated", true},
                                                    {"audiences", {wire::kAttachAudience}},
                                                    {"user",
                                                     {{"username", "harness"},
                                                      {"uid", "u1"},
                                                      {"groups", {"g1", "g2"}},
                                                      {"extra", {{"pod", {"p"}}}}}}})});
  ASSERT_TRUE(asked.result) << asked.result.error().message;
  EXPECT_EQ(*asked.result, (Caller{"harness", "u1", {"g1", "g2"}, {{"pod", {"p"}}}}));
  EXPECT_THAT(asked.url, HasSubstr("/apis/authentication.k8s.io/v1/tokenreviews"));
  EXPECT_EQ(asked.body["spec"],
            (Json{{"token", "c4n4ry"}, {"audiences", {wire::kAttachAudience}}}));
}

TEST(Reviewer, BelievesNoTokenThatIsNotMeantForUs) {
  const Json user = {{"username", "harness"}};
  expect_refusals(
      {
          {"not valid",
           {201, token_review({{"error", "c4n4ry is expired"}})},
           ErrorCode::kDenied,
           "is not valid for the audience sandfleet.dev/attach"},
          {"no audience",
           {201, token_review({{"authenticated", true}, {"user", user}})},
           ErrorCode::kDenied,
           "not meant for the audience"},
          {"another audience",
           {201, token_review({{"authenticated", true}, {"audiences", {"api"}}, {"user", user}})},
           ErrorCode::kDenied,
           "not meant for the audience"},
          {"no name",
           {201, token_review({{"authenticated", true}, {"audiences", {wire::kAttachAudience}}})},
           ErrorCode::kUnavailable,
           "named no user"},
          {"no status", {201, Json::object()}, ErrorCode::kDenied, "is not valid"},
          {"we may not ask",
           {403, {{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "no"}}},
           ErrorCode::kUnavailable,
           "the controller may not ask the API server"},
          {"it is away", {503, Json::object()}, ErrorCode::kUnavailable, "503"},
      },
      identified);
}

TEST(Reviewer, AsksWhetherACallerMayAttach) {
  const auto asked = allowed({201, access_review({{"allowed", true}})});
  EXPECT_TRUE(asked.result);
  EXPECT_THAT(asked.url, HasSubstr("/apis/authorization.k8s.io/v1/subjectaccessreviews"));
  EXPECT_EQ(asked.body["spec"], Json::parse(R"({
      "user": "system:serviceaccount:team-a:harness", "uid": "u1", "groups": ["g1", "g2"],
      "extra": {"pod": ["p"]},
      "resourceAttributes": {"verb": "create", "group": "sandfleet.dev", "version": "v1alpha1",
          "resource": "sandboxes", "subresource": "attach", "namespace": "team-a", "name": "box"}
      })"));
}

TEST(Reviewer, TellsARefusalFromASilence) {
  expect_refusals(
      {
          {"refused",
           {201, access_review({{"allowed", false}, {"reason", "no\nrole"}})},
           ErrorCode::kDenied,
           "may not create sandboxes/attach for team-a/box: no role"},
          {"refused in spite of a failure",
           {201, access_review({{"denied", true}, {"evaluationError", "x"}})},
           ErrorCode::kDenied,
           "may not create"},
          {"an authorizer failed",
           {201, access_review({{"evaluationError", "webhook away"}})},
           ErrorCode::kUnavailable,
           "could not decide: webhook away"},
          {"no status", {201, Json::object()}, ErrorCode::kUnavailable, "no status"},
          {"it is away", {500, Json::object()}, ErrorCode::kUnavailable, "500"},
      },
      allowed);
}

}  // namespace
}  // namespace controller
