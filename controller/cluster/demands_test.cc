#include "controller/cluster/demands.h"

#include <gmock/gmock.h>

#include <atomic>

#include "libs/base/testing/eventually.h"
#include "libs/kube/testing/fake_server.h"
#include "libs/manifests/schema.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;
using kube::Right;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Whereabouts kAt{.own_space = "own", .space = "team"};

// An API server that knows rights and definitions.
class DemandsTest : public testing::Test {
 protected:
  net::Answer answer(const net::Request& request) {
    if (request.method == "GET") return net::answer(status_, base::to_text(document_));
    const Json asked = (*base::parse_json(request.body))["spec"]["resourceAttributes"];
    const auto text = [&](const char* key) { return asked[key].get<std::string>(); };
    const Right right{text("verb"),        text("group"),     text("resource"),
                      text("subresource"), text("namespace"), text("name")};
    const bool allowed = std::ranges::find(lacking_, right) == lacking_.end();
    return net::answer(status_, base::to_text(Json{{"status", {{"allowed", allowed}}}}));
  }
  base::Result<base::Done> check_definitions() {
    return controller::check_definitions(server_.client(), [this] {
      ++rests_;
      if (then_) then_();
    });
  }
  // As an API server publishes the definitions of this build.
  static Json published() {
    Json schemas;
    for (const auto& [name, kind] : {std::pair("Sandbox", manifests::Kind::kSandbox),
                                     std::pair("SandboxProvider", manifests::Kind::kProvider)}) {
      Json schema = manifests::schema_of(kind).json();
      schema["x-kubernetes-group-version-kind"] = {
          {{"group", "sandfleet.dev"}, {"version", "v1alpha1"}, {"kind", name}}};
      schemas[std::string("dev.sandfleet.v1alpha1.") + name] = std::move(schema);
    }
    return {{"components", {{"schemas", std::move(schemas)}}}};
  }
  Json& status_fields() {
    return document_["components"]["schemas"]["dev.sandfleet.v1alpha1.Sandbox"]["properties"]
                    ["status"]["properties"];
  }

  std::vector<Right> lacking_;
  Json document_ = published();
  int status_ = 200, rests_ = 0;
  std::function<void()> then_;
  kube::FakeServer server_{[this](const net::Request& request) { return answer(request); }};
};

TEST_F(DemandsTest, BeginsWithEveryRight) {
  EXPECT_TRUE(check_rights(server_.client(), kAt));
  EXPECT_EQ(server_.transport().count("POST"),
            rights_needed(kAt).size() + rights_wished(kAt).size());
}

TEST_F(DemandsTest, AsksForRightsSideBySide) {
  std::atomic<int> under_way = 0, most = 0;
  server_.transport().play([&](const net::Request& request) {
    ++under_way;
    base::eventually([&] { return under_way > 1 || most > 1; });
    most = std::max<int>(most, under_way);
    --under_way;
    return answer(request);
  });
  EXPECT_TRUE(check_rights(server_.client(), kAt));
  EXPECT_GT(most, 1) << "one after another, a start waits for dozens of answers";
}

TEST_F(DemandsTest, DoesNotBeginWithoutAnyOneRight) {
  for (const Right& right : rights_needed(kAt)) {
    lacking_ = {right};
    const auto checked = check_rights(server_.client(), kAt);
    ASSERT_FALSE(checked) << kube::to_text(right);
    EXPECT_EQ(checked.error().code, ErrorCode::kDenied);
    EXPECT_EQ(checked.error().message,
              "the controller may not " + kube::to_text(right) +
                  ", and does not begin without: install the chart with rbac.create=true, or bind "
                  "its account to a role that has it, and see with '" +
                  kube::can_i(right) + "'");
  }
}

TEST_F(DemandsTest, NamesAllRightsThatAreMissingAtOnce) {
  lacking_ = {{"watch", "sandfleet.dev", "sandboxes", "", "team"},
              {"get", "", "secrets", "", "own"}};
  EXPECT_THAT(check_rights(server_.client(), kAt).error().message,
              HasSubstr("may not watch sandboxes.sandfleet.dev in namespace team, get secrets in "
                        "namespace own, and does not begin"));
}

TEST_F(DemandsTest, GoesOnWithoutWhatNothingDependsOn) {
  Whereabouts at = kAt;
  EXPECT_EQ(rights_wished(at).size(), 1u);
  at.attaches = true;
  EXPECT_EQ(rights_wished(at).size(), 3u);
  for (const auto& wish : rights_wished(at)) {
    lacking_ = {wish.right};
    EXPECT_TRUE(check_rights(server_.client(), at)) << kube::to_text(wish.right);
  }
}

TEST_F(DemandsTest, NeedsNoNamespaceOfOthersWhoseFleetIdIsGiven) {
  Whereabouts at = kAt;
  const auto asks_for_namespaces = [&] {
    return std::ranges::any_of(rights_needed(at),
                               [](const Right& each) { return each.resource == "namespaces"; });
  };
  EXPECT_TRUE(asks_for_namespaces());
  at.needs_fleet_id = false;
  EXPECT_FALSE(asks_for_namespaces());
}

TEST_F(DemandsTest, TakesNoAnswerForNoRefusal) {
  for (const int status : {403, 404}) {
    status_ = status;
    EXPECT_TRUE(check_rights(server_.client(), kAt)) << status;
    EXPECT_TRUE(check_definitions()) << status;
  }
  status_ = 401;
  EXPECT_THAT(check_rights(server_.client(), kAt).error().message,
              HasSubstr("the cluster does not know you"));
  status_ = 503;
  EXPECT_FALSE(check_rights(server_.client(), kAt));
  EXPECT_FALSE(check_definitions());
}

TEST_F(DemandsTest, TakesDefinitionsThatAreAsNewOrNewer) {
  EXPECT_TRUE(check_definitions());
  status_fields()["ofTheFuture"] = {{"type", "string"}};
  EXPECT_TRUE(check_definitions());
  document_ = Json::object();  // Whatever else is served there: listing our resources will tell.
  EXPECT_TRUE(check_definitions());
  EXPECT_EQ(rests_, 0);
}

TEST_F(DemandsTest, RefusesDefinitionsThatWouldDropWhatItWrites) {
  status_fields().erase("endedBy");
  status_fields()["conditions"]["items"]["properties"].erase("reason");
  const auto checked = check_definitions();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "the cluster's definitions of sandfleet.dev are older than this program: that of "
            "Sandbox has no status.conditions[].reason, status.endedBy; upgrade the chart with "
            "crds.install=true, or them alone (kubectl apply -f crds/)");
  EXPECT_EQ(rests_, kDefinitionLooksMax - 1);
}

TEST_F(DemandsTest, ShowsAFewOfManyFields) {
  status_fields() = Json::object();
  EXPECT_THAT(check_definitions().error().message,
              testing::ContainsRegex("that of Sandbox has no ([^,]*, ){4}[^,]* and [0-9]+ more;"));
}

TEST_F(DemandsTest, WaitsForAServerThatTellsOfNewDefinitionsLate) {
  status_fields().erase("endedBy");
  then_ = [this] {
    if (rests_ == 3) document_ = published();
  };
  EXPECT_TRUE(check_definitions());
  EXPECT_EQ(rests_, 3);
}

TEST(MissingFields, LooksIntoListsAndPastWhatEveryObjectHas) {
  const auto of = [](const char* ours, const char* served) {
    return missing_fields(*base::parse_json(ours), *base::parse_json(served));
  };
  constexpr const char* kDeep =
      R"({"properties": {"spec": {"properties": {"env": {"items": {"properties": {"name": {}}}}}}}})";
  EXPECT_THAT(of(kDeep, kDeep), IsEmpty());
  EXPECT_THAT(of(kDeep, "{}"), ElementsAre("spec"));
  EXPECT_THAT(of(kDeep, R"({"properties": {"spec": {"properties": {"env": {"items": {}}}}}})"),
              ElementsAre("spec.env[].name"));
  EXPECT_THAT(of(R"({"properties": {"kind": {}, "metadata": {}, "apiVersion": {}}})", "{}"),
              IsEmpty());
  EXPECT_THAT(of(kDeep, R"({"x-kubernetes-preserve-unknown-fields": true})"), IsEmpty());
}

}  // namespace
}  // namespace controller
