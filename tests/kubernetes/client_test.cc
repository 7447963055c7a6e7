#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/testing/eventually.h"
#include "libs/kube/elector.h"
#include "libs/kube/event_recorder.h"
#include "libs/kube/informer.h"
#include "libs/kube/shards.h"
#include "libs/net/cpprest/cpprest_transport.h"
#include "libs/net/curl_transport.h"

// The Kubernetes client against a real API server, which on_a_server.py starts. What only that
// script can do is asked of it with a line on standard output.
namespace kube {

void PrintTo(Reason reason, std::ostream* out) { *out << to_word(reason); }

namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

void ask_harness(const char* what) {
  std::cout << "@" << what << '\n' << std::flush;
  std::string answer;
  ASSERT_TRUE(std::getline(std::cin, answer));
  ASSERT_EQ(answer, "done");
}

Config config() {
  auto found = find_config({}, surroundings_of_process());
  EXPECT_TRUE(found) << found.error().message;
  return *std::move(found);
}

std::unique_ptr<net::Transport> transport(const net::ConnectionOptions& options) {
  const char* library = std::getenv("KUBE_TEST_TRANSPORT");
  return library && library == std::string("cpprest") ? net::cpprest_transport(options)
                                                      : net::curl_transport(options);
}

// One client in a namespace of its own.
class ServerTest : public testing::Test {
 protected:
  struct Way {
    explicit Way(Config config, const std::string& manager = "tests")
        : connection(std::move(config), clock, {.transport = transport}),
          client(connection, {.field_manager = manager}) {}
    base::SystemClock clock;
    Connection connection;
    Client client;
  };

  ServerTest() {
    const auto made = client_.create(kNamespaces, {{"metadata", {{"name", space_}}}});
    EXPECT_TRUE(made) << made.error().message;
  }

  Json config_map(const std::string& name, Json data = Json::object()) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", space_}}},
            {"data", std::move(data)}};
  }
  Json sandbox(const std::string& name, Json spec = Json::object()) const {
    spec["template"] = {{"id", "base"}};
    return {{"apiVersion", "sandfleet.dev/v1alpha1"},
            {"kind", "Sandbox"},
            {"metadata", {{"name", name}, {"namespace", space_}}},
            {"spec", std::move(spec)}};
  }
  api::Key key(const std::string& name) const { return {space_, name}; }
  Json created(const Resource& resource, const Json& object) {
    auto made = client_.create(resource, object);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : Json();
  }
  template <typename T>
  static Reason reason_of(const Answer<T>& answer) {
    EXPECT_FALSE(answer);
    return answer ? Reason::kOther : answer.error().reason;
  }

  const std::string space_ = "t-" + base::random_hex(6);
  Way way_{config()};
  Client& client_ = way_.client;
};

// --- Verbs and refusals.

TEST_F(ServerTest, TellsRefusalsApart) {
  EXPECT_EQ(reason_of(client_.get(kConfigMaps, key("none"))), Reason::kNotFound);
  const Json made = created(kConfigMaps, config_map("one"));
  EXPECT_EQ(reason_of(client_.create(kConfigMaps, config_map("one"))), Reason::kAlreadyExists);

  const auto identity = identity_of(made);
  ASSERT_TRUE(client_.update(kConfigMaps, config_map("one", {{"a", "1"}}),
                             {identity.uid, identity.resource_version}));
  EXPECT_EQ(reason_of(client_.update(kConfigMaps, config_map("one", {{"a", "2"}}),
                                     {.resource_version = identity.resource_version})),
            Reason::kConflict);
  EXPECT_EQ(reason_of(client_.update(kConfigMaps, config_map("one"), {.uid = "another"})),
            Reason::kConflict);

  const auto invalid =
      client_.create(kSandboxes, sandbox("bad", {{"keepAlive", {{"timeoutSeconds", 3}}}}));
  ASSERT_EQ(reason_of(invalid), Reason::kInvalid);
  EXPECT_EQ(invalid.error().causes.at(0).field, "spec.keepAlive.timeoutSeconds");

  const Resource unknown{"sandfleet.dev", "v1alpha1", "nothings", "Nothing"};
  EXPECT_EQ(client_.list(unknown, {}, {}).error().code, ErrorCode::kUnavailable);
}

TEST_F(ServerTest, TellsWhoWeAreAndWhomWeActAs) {
  Config as_nobody = config();
  as_nobody.user.impersonation = {.user = "nobody", .groups = {"system:authenticated"}};
  Way nobody(as_nobody);
  const auto refused = nobody.client.get(kConfigMaps, key("one"));
  EXPECT_EQ(reason_of(refused), Reason::kForbidden);
  EXPECT_THAT(refused.error().message, HasSubstr("User \"nobody\" cannot get"));

  Config stranger = config();
  stranger.user = {.token = "canary"};
  Way strange(stranger);
  const auto unknown = strange.client.get(kConfigMaps, key("one"));
  EXPECT_EQ(reason_of(unknown), Reason::kUnauthorized);
}

TEST_F(ServerTest, KeepsNothingOfADryRun) {
  EXPECT_TRUE(client_.create(kConfigMaps, config_map("one"), {.dry_run = true}));
  EXPECT_EQ(reason_of(client_.get(kConfigMaps, key("one"))), Reason::kNotFound);
}

TEST_F(ServerTest, PatchesOnlyWhileItsTestsHold) {
  const Json made = created(kSandboxes, sandbox("one"));
  const std::string uid = identity_of(made).uid;
  const WriteOptions kStatus{.subresource = "status"};
  const auto bind = [&](const std::string& expected_uid, const std::string& id) {
    return client_.patch(kSandboxes, key("one"),
                         JsonPatch()
                             .test("/metadata/uid", expected_uid)
                             .add("/status", {{"sandboxID", id}, {"epoch", 1}}),
                         kStatus);
  };
  EXPECT_EQ(reason_of(bind("another", "i1")), Reason::kPatchUnfit);
  const auto bound = bind(uid, "i1");
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ((*bound)["status"]["sandboxID"], "i1");

  // Of something that is not there, a test fails all the same.
  EXPECT_EQ(
      reason_of(client_.patch(
          kSandboxes, key("one"),
          JsonPatch().test("/status/endpoint/url", "x").add("/status/state", "Running"), kStatus)),
      Reason::kPatchUnfit);
  EXPECT_EQ(reason_of(client_.patch(kSandboxes, key("one"),
                                    JsonPatch().test("/metadata/annotations/a", "x"))),
            Reason::kPatchUnfit);
  // The CRD's own rule is no failed test: an id never changes within an epoch.
  EXPECT_EQ(reason_of(bind(uid, "i2")), Reason::kInvalid);
}

TEST_F(ServerTest, MergesUnderPreconditions) {
  const Json made = created(kConfigMaps, config_map("one", {{"a", "1"}, {"b", "2"}}));
  const auto identity = identity_of(made);
  const Json change = {{"data", {{"a", nullptr}, {"c", "3"}}}};
  const auto merged =
      client_.merge(kConfigMaps, key("one"), change, {identity.uid, identity.resource_version});
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ((*merged)["data"], (Json{{"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(reason_of(client_.merge(kConfigMaps, key("one"), {{"data", {{"c", "4"}}}},
                                    {.resource_version = identity.resource_version})),
            Reason::kConflict);
  EXPECT_EQ(reason_of(client_.merge(kConfigMaps, key("one"), change, {.uid = "another"})),
            Reason::kConflict);
  created(kSandboxes, sandbox("one"));
  const Json pause = {{"spec", {{"desiredState", "Paused"}}}};
  EXPECT_EQ(reason_of(client_.merge(kSandboxes, key("one"), pause, {.uid = "another"})),
            Reason::kConflict);
}

TEST_F(ServerTest, AppliesWhatIsOursAndTakesOthersOnlyByForce) {
  Way other(config(), "others");
  const auto ours = client_.apply(kConfigMaps, config_map("one", {{"a", "ours"}}), false);
  ASSERT_TRUE(ours) << ours.error().message;
  const Json theirs = config_map("one", {{"a", "theirs"}, {"b", "theirs"}});
  const auto refused = other.client.apply(kConfigMaps, theirs, false);
  ASSERT_EQ(reason_of(refused), Reason::kConflict);
  EXPECT_THAT(refused.error().causes,
              Contains(testing::AllOf(testing::Field(&Cause::reason, "FieldManagerConflict"),
                                      testing::Field(&Cause::field, ".data.a"))));
  const auto taken = other.client.apply(kConfigMaps, theirs, true);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ((*taken)["data"]["a"], "theirs");
}

TEST_F(ServerTest, DeletesUnderPreconditionsAndTellsWhatStays) {
  const std::string uid = identity_of(created(kConfigMaps, config_map("one"))).uid;
  EXPECT_EQ(reason_of(client_.remove(kConfigMaps, key("one"), {.preconditions = {.uid = "x"}})),
            Reason::kConflict);
  const auto gone =
      client_.remove(kConfigMaps, key("one"),
                     {.preconditions = {.uid = uid}, .propagation = Propagation::kBackground});
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_FALSE((*gone).has_value());
  EXPECT_EQ(reason_of(client_.remove(kConfigMaps, key("one"))), Reason::kNotFound);

  Json held = config_map("two");
  held["metadata"]["finalizers"] = {"sandfleet.dev/test"};
  created(kConfigMaps, held);
  const auto staying = client_.remove(kConfigMaps, key("two"));
  ASSERT_TRUE(staying) << staying.error().message;
  ASSERT_TRUE((*staying).has_value());
  EXPECT_TRUE((**staying)["metadata"].contains("deletionTimestamp"));
  EXPECT_TRUE(client_.patch(kConfigMaps, key("two"),
                            JsonPatch()
                                .test("/metadata/finalizers/0", "sandfleet.dev/test")
                                .remove("/metadata/finalizers/0")));
  EXPECT_EQ(reason_of(client_.get(kConfigMaps, key("two"))), Reason::kNotFound);
}

// --- Lists and watches.

TEST_F(ServerTest, ListsInPagesThatExpire) {
  for (int number = 0; number < 7; ++number)
    created(kConfigMaps, config_map("c" + std::to_string(number)));
  std::vector<std::string> names;
  PageRequest request{.limit = 3};
  do {
    const auto page = client_.list(kConfigMaps, {space_}, request);
    ASSERT_TRUE(page) << page.error().message;
    for (const Json& item : page->items) names.push_back(identity_of(item).key.name);
    request.continue_token = page->continue_token;
  } while (!request.continue_token.empty());
  EXPECT_THAT(names, ElementsAre("c0", "c1", "c2", "c3", "c4", "c5", "c6"));

  ask_harness("restart-api-server-compacted");
  const std::string ancient =
      base::to_base64url(R"({"v":"meta.k8s.io/v1","rv":1,"start":"c0\u0000"})");
  EXPECT_EQ(reason_of(client_.list(kConfigMaps, {space_}, {.limit = 3, .continue_token = ancient})),
            Reason::kExpired);
}

TEST_F(ServerTest, WatchesFromWhereItIsToldAndHearsOfAnExpiredPast) {
  const std::string from = identity_of(created(kConfigMaps, config_map("one"))).resource_version;
  created(kConfigMaps, config_map("two"));
  ASSERT_TRUE(client_.remove(kConfigMaps, key("one")));
  std::vector<std::string> seen;
  const auto take = [&](WatchEvent&& event) {
    if (event.kind == WatchEvent::Kind::kBookmark) return true;
    seen.push_back((event.kind == WatchEvent::Kind::kDeleted ? "-" : "+") +
                   identity_of(event.object).key.name);
    return seen.size() < 2;
  };
  ASSERT_TRUE(client_.watch(kConfigMaps, {space_}, {.resource_version = from}, take, {}));
  EXPECT_THAT(seen, ElementsAre("+two", "-one"));

  const auto brief = client_.watch(kConfigMaps, {space_}, {.resource_version = from, .timeout = 1s},
                                   [](WatchEvent&&) { return true; }, {});
  EXPECT_TRUE(brief) << brief.error().message;

  ask_harness("restart-api-server-compacted");
  EXPECT_EQ(reason_of(client_.watch(kConfigMaps, {space_}, {.resource_version = from}, take, {})),
            Reason::kExpired);
}

TEST_F(ServerTest, ListsByStream) {
  created(kConfigMaps, config_map("one"));
  created(kConfigMaps, config_map("two"));
  std::vector<std::string> seen;
  bool ended = false;
  const auto answer =
      client_.watch(kConfigMaps, {.space = space_, .field_selector = "metadata.name!=two"},
                    {.initial_events = true},
                    [&](WatchEvent&& event) {
                      ended = ends_initial_events(event);
                      if (!ended) seen.push_back(identity_of(event.object).key.name);
                      return !ended;
                    },
                    {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(ended);
  EXPECT_THAT(seen, ElementsAre("one"));
}

// --- The informer.

class ServerInformerTest : public ServerTest {
 protected:
  void start(bool streaming, Scope scope) {
    ReflectorSettings settings{.course = {.streaming = streaming}, .page_size = 2};
    informer_.emplace(client_, way_.clock, kSandboxes, std::move(scope), api::sandbox_from_json,
                      settings);
    informer_->store().add_index("provider", [](const api::Sandbox& each) -> const std::string& {
      return each.spec.provider;
    });
    informer_->on_change([this](const api::Key&) { ++told_; });
    informer_->start();
    ASSERT_TRUE(informer_->wait_until_synced(30s, {}));
  }
  // Every name, and the version that the store has of it.
  std::map<std::string, std::string> held() {
    std::map<std::string, std::string> all;
    for (const auto& each : informer_->store().all())
      all[each->metadata.key.name] = each->metadata.resource_version;
    return all;
  }
  std::map<std::string, std::string> held_by_server() {
    std::map<std::string, std::string> all;
    const auto page = client_.list(kSandboxes, {space_}, {});
    EXPECT_TRUE(page) << page.error().message;
    if (page)
      for (const Json& item : page->items)
        all[identity_of(item).key.name] = identity_of(item).resource_version;
    return all;
  }
  bool is_as_the_server_has_it() {
    return base::eventually([&] { return held() == held_by_server(); }, base::Seconds(60));
  }

  std::atomic<int> told_ = 0;
  std::optional<Informer<api::Sandbox>> informer_;
};

TEST_F(ServerInformerTest, FollowsThroughRestartsAndForgottenHistory) {
  for (const bool streaming : {true, false}) {
    for (const char* name : {"a", "b", "c", "d", "e"}) created(kSandboxes, sandbox(name));
    start(streaming, {space_});
    EXPECT_EQ(informer_->store().size(), 5u);
    EXPECT_EQ(informer_->store().find_by("provider", "default").size(), 5u);

    ASSERT_TRUE(client_.remove(kSandboxes, key("a")));
    EXPECT_TRUE(client_.merge(kSandboxes, key("b"), {{"spec", {{"desiredState", "Paused"}}}}, {}));
    EXPECT_TRUE(is_as_the_server_has_it());
    EXPECT_EQ(informer_->stats().lists, 1u);

    ask_harness(streaming ? "restart-api-server" : "restart-api-server-compacted");
    ASSERT_TRUE(client_.remove(kSandboxes, key("c")));
    created(kSandboxes, sandbox("f"));
    EXPECT_TRUE(is_as_the_server_has_it());
    informer_.reset();
    for (const auto& [name, version] : held_by_server()) {
      ASSERT_TRUE(client_.remove(kSandboxes, key(name)));
    }
  }
}

TEST_F(ServerInformerTest, SeesOnlyWhatItsSelectorsSay) {
  Json labelled = sandbox("labelled");
  labelled["metadata"]["labels"] = {{"app", "x"}};
  created(kSandboxes, labelled);
  created(kSandboxes, sandbox("other"));
  start(true, {space_, "app=x", "spec.desiredState=Running"});
  EXPECT_THAT(held(), ElementsAre(testing::Key("labelled")));
  // What no longer fits is gone for us.
  ASSERT_TRUE(
      client_.merge(kSandboxes, key("labelled"), {{"spec", {{"desiredState", "Paused"}}}}, {}));
  EXPECT_TRUE(base::eventually([&] { return held().empty(); }));
}

TEST_F(ServerInformerTest, IsNeverBehindOurOwnWrites) {
  created(kSandboxes, sandbox("one"));
  start(true, {space_});
  ASSERT_TRUE(base::eventually([&] { return told_ == 1; }));
  for (int round = 0; round < 50; ++round) {
    const auto written = informer_->write(key("one"), [&] {
      return client_.merge(kSandboxes, key("one"),
                           {{"metadata", {{"labels", {{"round", std::to_string(round)}}}}}}, {});
    });
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(is_older(held()["one"], written->metadata.resource_version), false);
  }
  // Once this is told, so would have been what came before.
  created(kSandboxes, sandbox("two"));
  EXPECT_TRUE(base::eventually([&] { return told_ > 1; }));
  EXPECT_EQ(told_, 2);
}

// --- Leases.

TEST_F(ServerTest, ElectsOneAndThenTheNext) {
  Way way(config());
  LeaseObject mine(client_, key("fleet-0-of-1")), theirs(way.client, key("fleet-0-of-1"));
  Elector me(mine, way_.clock, {.identity = "me"});
  Elector you(theirs, way.clock, {.identity = "you"});
  me.turn({});
  you.turn({});
  EXPECT_TRUE(me.may_act());
  EXPECT_FALSE(you.may_act());
  EXPECT_EQ(you.holder(), "me");
  me.turn({});  // Renews.
  you.turn({});
  EXPECT_TRUE(me.may_act());
  me.release({});
  EXPECT_FALSE(me.may_act());
  you.turn({});
  EXPECT_TRUE(you.may_act());
  const auto lease = client_.get(kLeases, key("fleet-0-of-1"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ((*lease)["spec"]["holderIdentity"], "you");
  EXPECT_EQ((*lease)["spec"]["leaseTransitions"], 1);

  // Another count waits until this one is given back.
  OtherCounts others(client_, space_, "fleet", 2, way_.clock);
  EXPECT_EQ(*others.are_gone({}), false);
  you.release({});
  EXPECT_EQ(*others.are_gone({}), true);
}

// --- Events.

TEST_F(ServerTest, RecordsEventsAndTheirSeries) {
  const std::string uid = identity_of(created(kSandboxes, sandbox("one"))).uid;
  EventRecorder recorder(client_, way_.clock, {.instance = "tests-0"});
  const api::Event event{"Warning", "CreateFailed", "Create", "no answer"};
  for (int time = 0; time < 3; ++time) recorder.record({kSandboxes, key("one"), uid}, event);
  ASSERT_TRUE(base::eventually([&] { return recorder.stats().written == 2; }));
  EXPECT_EQ(recorder.stats().dropped, 0u);
  const auto page = client_.list(kEvents, {space_}, {});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->items.size(), 1u);
  const Json& kept = page->items[0];
  EXPECT_EQ(kept["note"], "no answer");
  EXPECT_EQ(kept["regarding"]["uid"], uid);
  EXPECT_GE(kept["series"]["count"], 2);
}

}  // namespace
}  // namespace kube
