#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/resources/cluster_backend.h"
#include "cli/resources/folder_backend.h"
#include "cli/testing/fake_cluster.h"
#include "cli/testing/run_line.h"
#include "libs/api/annotations.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/kube/event_book.h"
#include "libs/manifests/file_store.h"
#include "libs/yaml/reader.h"

// What a person may rely on wherever the resources are.
namespace cli {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Look = std::function<bool(base::Milliseconds)>;

std::string manifest_of(const api::Key& key) {
  return "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: " + key.name +
         ", namespace: " + key.space +
         "}\nspec:\n  template: {id: base}\n  lifecycle: {idleSeconds: 60}\n";
}

// A place with resources, and what others do there.
class World {
 public:
  virtual ~World() = default;
  virtual base::FakeClock& clock() = 0;
  virtual std::unique_ptr<Backend> backend(Look look) = 0;
  virtual void declare(const api::Key& key) = 0;
  virtual void pass() = 0;  // What was asked for reaches the controller.
  virtual std::optional<api::Sandbox> sandbox(const api::Key& key) = 0;
  virtual void write(const api::Sandbox& sandbox) = 0;  // Its status and finalizers.
  virtual void release(const api::Key& key) = 0;        // Its finalizers go, and it with them.
  virtual void tell(const api::Sandbox& about, const api::Event& event) = 0;
};

class FolderWorld final : public World {
 public:
  FolderWorld() {
    fs::create_directories(manifests_);
    auto opened = manifests::FileStore::open({.manifests = manifests_, .state = state_}, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    pass();
  }
  base::FakeClock& clock() override { return clock_; }
  std::unique_ptr<Backend> backend(Look look) override {
    return std::make_unique<FolderBackend>(state_, std::move(look));
  }
  void declare(const api::Key& key) override {
    EXPECT_TRUE(
        base::write_file_atomically(manifests_ / (key.name + ".yaml"), manifest_of(key), 0644));
    pass();
  }
  void pass() override {
    const auto scanned = store_->scan_once();
    EXPECT_TRUE(scanned) << scanned.error().message;
  }
  std::optional<api::Sandbox> sandbox(const api::Key& key) override {
    const auto found = store_->find_sandbox(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  void write(const api::Sandbox& sandbox) override {
    const auto& [key, uid] = std::pair(sandbox.metadata.key, sandbox.metadata.uid);
    EXPECT_TRUE(store_->update_metadata(key, {uid}, sandbox.metadata.annotations,
                                        sandbox.metadata.finalizers));
    EXPECT_TRUE(
        store_->update_status(key, {uid}, sandbox.status, api::ResourceStore::Durability::kNow));
  }
  void release(const api::Key& key) override {
    const auto found = store_->find_sandbox(key);
    EXPECT_TRUE(store_->update_metadata(key, {found->metadata.uid}, {}, {}));
  }
  void tell(const api::Sandbox& about, const api::Event& event) override {
    store_->record_event(about, event);
  }

 private:
  base::FakeClock clock_;
  base::TemporaryFolder folder_;
  fs::path manifests_ = folder_ / "manifests", state_ = folder_ / "state";
  std::unique_ptr<manifests::FileStore> store_;
};

class ClusterWorld final : public World {
 public:
  ClusterWorld() { cluster_.add_space("team"); }
  base::FakeClock& clock() override { return cluster_.clock(); }
  std::unique_ptr<Backend> backend(Look look) override {
    // Looks again and again, for this cluster has nothing to watch.
    struct Looking final : ClusterBackend {
      Looking(kube::Client& client, const base::Clock& clock, Look look)
          : ClusterBackend(client, clock, [](const std::string&) {}), look(std::move(look)) {}
      bool await_change(const Query&, base::Milliseconds most) override {
        return look(std::min(most, base::Milliseconds(200)));
      }
      Look look;
    };
    return std::make_unique<Looking>(client_, clock(), std::move(look));
  }
  void declare(const api::Key& key) override {
    cluster_.put(kube::kSandboxes, yaml::read(manifest_of(key), "").documents.at(0).json);
  }
  void pass() override {}
  std::optional<api::Sandbox> sandbox(const api::Key& key) override {
    const auto found = cluster_.find(kube::kSandboxes, key);
    if (found.is_null()) return std::nullopt;
    const auto read = api::sandbox_from_json(found);
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  void write(const api::Sandbox& sandbox) override {
    cluster_.write(kube::kSandboxes, api::to_json(sandbox));
  }
  void release(const api::Key& key) override { cluster_.drop(kube::kSandboxes, key); }
  void tell(const api::Sandbox& about, const api::Event& event) override {
    if (auto write = events_.record({kube::kSandboxes, about.metadata.key, about.metadata.uid},
                                    event, clock().now(), clock().wall())) {
      base::Json object = cluster_.find(kube::kEvents, write->key);
      if (object.is_null()) object = base::Json::object();
      object.merge_patch(write->body);
      cluster_.write(kube::kEvents, object);
    }
    for (const auto& write : events_.due(clock().now() + base::Seconds(60))) {
      base::Json object = cluster_.find(kube::kEvents, write.key);
      object.merge_patch(write.body);
      cluster_.write(kube::kEvents, object);
    }
  }

 private:
  FakeCluster cluster_;
  kube::Client client_{cluster_.server().connection(), {.field_manager = kFieldManager}};
  kube::EventBook events_{{}};
};

class Everywhere : public testing::TestWithParam<const char*> {
 protected:
  Everywhere() {
    if (GetParam() == std::string("Folder"))
      world_ = std::make_unique<FolderWorld>();
    else
      world_ = std::make_unique<ClusterWorld>();
    world_->declare(demo_);
  }

  // One line as a person types it, the place apart. While the person waits, `controller` works.
  int type(const std::vector<std::string>& line, const std::string& piped = "") {
    out_.str("");
    err_.str("");
    std::istringstream in(piped);
    const auto backend = world_->backend([this](base::Milliseconds time) {
      world_->clock().advance(time);
      world_->pass();
      if (controller) controller();
      return --looks_left_ > 0;
    });
    const Terminal terminal{out_, err_, in, world_->clock()};
    const int code = run_line(line, *backend, terminal);
    world_->pass();
    return code;
  }

  // What the reconciler would report.
  void report(const std::string& type, const std::string& reason) {
    auto sandbox = world_->sandbox(demo_);
    if (!sandbox) return;
    auto& status = sandbox->status;
    status.observed_generation = sandbox->metadata.generation;
    status.state = reason;
    status.conditions.clear();
    api::set_condition(status.conditions, {type, "True", reason, "", sandbox->metadata.generation,
                                           world_->clock().wall()});
    world_->write(*sandbox);
  }
  void report_at_the_next_look(const char* type, const char* reason) {
    controller = [=, this, reported = false]() mutable {
      if (!std::exchange(reported, true)) report(type, reason);
    };
  }
  void keep_while_deleting() {
    auto sandbox = world_->sandbox(demo_);
    sandbox->metadata.finalizers = {std::string(api::kFinalizer)};
    world_->write(*sandbox);
  }

  const api::Key demo_{"default", "demo"};
  std::unique_ptr<World> world_;
  std::ostringstream out_, err_;
  int looks_left_ = 1000;
  std::function<void()> controller;
};

INSTANTIATE_TEST_SUITE_P(, Everywhere, testing::Values("Folder", "Cluster"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Everywhere, GetListsTheNamespaceThatIsAskedFor) {
  world_->declare({"default", "first"});
  world_->declare({"team", "second"});
  EXPECT_EQ(type({"get"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("NAME "));
  EXPECT_THAT(out_.str(), HasSubstr("\ndemo "));
  EXPECT_THAT(out_.str(), HasSubstr("\nfirst "));
  EXPECT_THAT(out_.str(), Not(HasSubstr("second")));
  EXPECT_EQ(type({"get", "sfb", "-n", "team"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\nsecond "));
  EXPECT_THAT(out_.str(), Not(HasSubstr("demo")));
  EXPECT_EQ(type({"get", "sandboxes", "-A"}), kDone);
  EXPECT_THAT(out_.str(), StartsWith("NAMESPACE "));
  EXPECT_THAT(out_.str(), HasSubstr("\nteam        second "));
  EXPECT_EQ(type({"get", "second", "-A"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\nteam        second "));
}

TEST_P(Everywhere, GetPrintsOneObjectAsItselfAndSeveralAsAList) {
  EXPECT_EQ(type({"get", "sandbox/demo", "-o", "json"}), kDone);
  const auto one = base::parse_json(out_.str());
  ASSERT_TRUE(one) << out_.str();
  EXPECT_EQ((*one)["metadata"]["name"], "demo");
  EXPECT_EQ(type({"get", "-o", "json"}), kDone);
  const auto all = base::parse_json(out_.str());
  ASSERT_TRUE(all) << out_.str();
  EXPECT_EQ((*all)["items"].size(), 1u);
  EXPECT_EQ(type({"get", "demo", "-o", "yaml"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("\nkind: Sandbox\n"));
  EXPECT_EQ(type({"get", "-o", "wide"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr(" PROVIDER   EPOCH   REASON\n"));
}

TEST_P(Everywhere, GetNamesWhatIsNotThere) {
  EXPECT_EQ(type({"get", "nobody"}), kNotFound);
  EXPECT_EQ(err_.str(), "sandfleet: no Sandbox \"nobody\" in namespace default\n");
  EXPECT_EQ(type({"get", "demo", "nobody"}), kNotFound);
  EXPECT_EQ(err_.str(), "sandfleet: no Sandbox \"nobody\" in namespace default\n");
  EXPECT_EQ(type({"get", "sfp", "nobody"}), kNotFound);
  EXPECT_EQ(err_.str(), "sandfleet: no SandboxProvider \"nobody\"\n");
  EXPECT_EQ(type({"get", "sfp"}), kDone);
  EXPECT_EQ(err_.str(), "No resources found.\n");
}

TEST_P(Everywhere, WatchPrintsTheHeadingsOnceAndThenEachChange) {
  looks_left_ = 5;
  report_at_the_next_look("Ready", "Running");
  EXPECT_EQ(type({"get", "-w"}), kDone);
  const auto lines = base::split(out_.str(), '\n');
  ASSERT_EQ(lines.size(), 4u) << out_.str();
  EXPECT_THAT(lines[0], StartsWith("NAME "));
  EXPECT_THAT(lines[1], StartsWith("demo"));
  EXPECT_THAT(lines[1], HasSubstr("Unknown"));
  EXPECT_THAT(lines[2], HasSubstr("True"));
}

TEST_P(Everywhere, WatchKeepsEachColumnWhereItWas) {
  world_->declare({"default", "longer"});
  looks_left_ = 5;
  report_at_the_next_look("Ready", "Running");
  EXPECT_EQ(type({"get", "-w"}), kDone);
  const auto lines = base::split(out_.str(), '\n');
  ASSERT_EQ(lines.size(), 5u) << out_.str();
  EXPECT_EQ(std::string_view(lines[3]).find("True"), std::string_view(lines[0]).find("READY"));
}

TEST_P(Everywhere, ATerminatedSandboxIsNotResumed) {
  ASSERT_EQ(type({"terminate", "demo"}), kDone) << err_.str();
  EXPECT_EQ(type({"resume", "demo"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("\"demo\" is Terminated, and that is final"));
  EXPECT_EQ(world_->sandbox(demo_)->spec.desired_state, api::DesiredState::kTerminated);
  EXPECT_EQ(type({"terminate", "demo"}), kDone);
}

TEST_P(Everywhere, WhatEndedByItselfIsNeitherResumedNorPaused) {
  auto sandbox = world_->sandbox(demo_);
  sandbox->status.ended_by = api::EndedBy::kMaxLifetime;
  world_->write(*sandbox);
  for (const std::string verb : {"resume", "pause"}) {
    for (const auto& words : {std::vector{verb, std::string("demo")},
                              std::vector{verb, std::string("demo"), std::string("--wait")}}) {
      EXPECT_EQ(type(words), kRefused) << verb;
      EXPECT_THAT(err_.str(), HasSubstr("\"demo\" is Terminated, and that is final"));
    }
  }
  EXPECT_EQ(world_->sandbox(demo_)->spec.desired_state, api::DesiredState::kRunning);
}

TEST_P(Everywhere, WhatEndsWhileItIsWaitedForEndsTheWait) {
  controller = [this] {
    auto sandbox = world_->sandbox(demo_);
    sandbox->status.ended_by = api::EndedBy::kShutdownTime;
    world_->write(*sandbox);
  };
  EXPECT_EQ(type({"pause", "demo", "--wait"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("\"demo\" is Terminated, and that is final"));
}

TEST_P(Everywhere, DescribeShowsOwnEventsOnly) {
  world_->declare({"default", "other"});
  world_->tell(*world_->sandbox(demo_), {"Normal", "Ready", "Prepare", "it answers"});
  world_->tell(*world_->sandbox({"default", "other"}), {"Normal", "Ready", "Prepare", "that too"});
  EXPECT_EQ(type({"describe", "demo"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Desired state:    Running\n"));
  EXPECT_THAT(out_.str(), HasSubstr("it answers"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("that too")));
  EXPECT_EQ(type({"describe"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("that too"));
  EXPECT_EQ(type({"describe", "nobody"}), kNotFound);
}

TEST_P(Everywhere, EventsAreCountedAndFilteredByName) {
  world_->declare({"default", "first"});
  for (int i = 0; i < 3; ++i)
    world_->tell(*world_->sandbox(demo_), {"Normal", "Ready", "Prepare", "it answers"});
  EXPECT_EQ(type({"events"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("sandbox/demo   3       it answers\n"));
  EXPECT_EQ(type({"events", "first"}), kDone);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "No events found.\n");
  EXPECT_EQ(type({"events", "demo", "-o", "json"}), kDone);
  EXPECT_EQ((*base::parse_json(out_.str()))["items"][0]["count"], 3);
}

TEST_P(Everywhere, EventsNameWhatNeverWas) {
  world_->declare({"team", "second"});
  world_->tell(*world_->sandbox(demo_), {"Normal", "Ready", "Prepare", "it answers"});
  EXPECT_EQ(type({"events", "demo", "nobody"}), kNotFound);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "sandfleet: no Sandbox \"nobody\" in namespace default\n");
  EXPECT_EQ(type({"events", "demo", "-n", "team"}), kNotFound);
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_EQ(type({"events", "demo"}), kDone) << "what is gone has its events";
  EXPECT_THAT(out_.str(), HasSubstr("it answers"));
  EXPECT_EQ(type({"events", "sfp", "default"}), kUsage);
}

TEST_P(Everywhere, EventsAreWatched) {
  looks_left_ = 5;
  controller = [&, told = false]() mutable {
    if (!std::exchange(told, true))
      world_->tell(*world_->sandbox(demo_), {"Normal", "Ready", "Prepare", "it answers"});
  };
  EXPECT_EQ(type({"events", "-w"}), kDone);
  EXPECT_EQ(err_.str(), "No events found.\n");
  EXPECT_THAT(out_.str(), HasSubstr("it answers\n"));
}

struct WishCase {
  const char* verb;
  api::DesiredState state;
};
TEST_P(Everywhere, WishesReachTheController) {
  const WishCase cases[] = {{"pause", api::DesiredState::kPaused},
                            {"resume", api::DesiredState::kRunning},
                            {"terminate", api::DesiredState::kTerminated}};
  for (const auto& each : cases) {
    EXPECT_EQ(type({each.verb, "demo"}), kDone) << err_.str();
    EXPECT_THAT(out_.str(), StartsWith("sandbox/demo desiredState " +
                                       std::string(to_word(each.state)) + " in "));
    EXPECT_EQ(world_->sandbox(demo_)->spec.desired_state, each.state);
  }
}

TEST_P(Everywhere, ResumeWakesWhatIdles) {
  api::Sandbox idle = *world_->sandbox(demo_);
  idle.spec.lifecycle.idle = base::Seconds(60);
  const auto resume = [&](api::PausedBy paused_by) {
    const auto before = api::request_to_wake(world_->sandbox(demo_)->metadata);
    idle.metadata = world_->sandbox(demo_)->metadata;
    idle.status.paused_by = paused_by;
    world_->write(idle);
    out_.str("");
    world_->clock().advance(base::Seconds(1));
    EXPECT_EQ(type({"resume", "demo"}), kDone) << err_.str();
    world_->pass();
    return api::request_to_wake(world_->sandbox(demo_)->metadata) != before;
  };
  EXPECT_FALSE(resume(api::PausedBy::kUser));
  EXPECT_THAT(out_.str(), StartsWith("sandbox/demo desiredState Running in "));
  EXPECT_TRUE(resume(api::PausedBy::kIdle));
  EXPECT_THAT(out_.str(), StartsWith("sandbox/demo wake requested"));
  const auto seen = world_->sandbox(demo_);
  EXPECT_EQ(seen->spec.desired_state, api::DesiredState::kRunning);
  idle.status.wake_seen = api::request_to_wake(seen->metadata);
  EXPECT_TRUE(resume(api::PausedBy::kIdle)) << "and again, when it idles again";
}

TEST_P(Everywhere, PauseWaitsUntilThisWishWasSeen) {
  report("Ready", "Running");
  controller = [&, looks = 0]() mutable {
    if (++looks > 2) report("Paused", "Paused");
  };
  EXPECT_EQ(type({"pause", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("waiting for sandbox/demo: "));
}

TEST_P(Everywhere, WaitingEndsWithTheTimeoutAndSaysWhatIsMissing) {
  EXPECT_EQ(type({"pause", "demo", "--wait", "--timeout", "3"}), kTimedOut);
  EXPECT_THAT(err_.str(), HasSubstr("sandbox/demo: not so after 3s: "));
  EXPECT_THAT(err_.str(), EndsWith("is the controller running?\n"));
}

TEST_P(Everywhere, WaitingDoesNotDoubtAControllerThatHasSpoken) {
  controller = [&] { report("Ready", "Running"); };
  EXPECT_EQ(type({"pause", "demo", "--wait", "--timeout", "3"}), kTimedOut);
  EXPECT_THAT(err_.str(), Not(HasSubstr("is the controller running?")));
}

TEST_P(Everywhere, WaitingEndsWhenOnlyAChangeCanHelp) {
  controller = [&] { report("Stalled", "TemplateNotFound"); };
  EXPECT_EQ(type({"resume", "demo", "--wait"}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("is stalled: Stalled=True TemplateNotFound"));
}

TEST_P(Everywhere, ReconcileAsksForALook) {
  const auto request = [&] {
    return world_->sandbox(demo_)->metadata.annotations[std::string(api::kReconcileAnnotation)];
  };
  const api::SandboxSpec before = world_->sandbox(demo_)->spec;
  EXPECT_EQ(type({"reconcile", "demo"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("sandbox/demo look requested"));
  const std::string first = request();
  EXPECT_NE(first, "");
  world_->clock().advance(base::Milliseconds(1));
  EXPECT_EQ(type({"reconcile", "sandbox/demo"}), kDone) << err_.str();
  EXPECT_NE(request(), first) << "each request is another";
  EXPECT_EQ(world_->sandbox(demo_)->spec, before);
  EXPECT_EQ(type({"reconcile", "demo", "nobody"}), kNotFound);
  EXPECT_EQ(type({"reconcile"}), kUsage);
  EXPECT_EQ(type({"reconcile", "sfp", "default"}), kUsage);
}

TEST_P(Everywhere, NamesAreNeededAndProvidersAreNotForThese) {
  EXPECT_EQ(type({"pause"}), kUsage);
  EXPECT_EQ(err_.str(), "sandfleet: pause needs a name: sandfleet pause NAME\n");
  EXPECT_EQ(type({"delete", "sfp", "default"}), kUsage);
  EXPECT_EQ(type({"resume", "nobody"}), kNotFound);
  EXPECT_EQ(type({"delete", "nobody"}), kNotFound);
}

TEST_P(Everywhere, DeleteWaitsUntilItIsGone) {
  keep_while_deleting();
  EXPECT_EQ(type({"delete", "demo", "--wait", "--timeout", "3"}), kTimedOut);
  EXPECT_THAT(out_.str(), HasSubstr("sandbox/demo deletion requested"));
  EXPECT_TRUE(world_->sandbox(demo_)->deleting());
  controller = [&, looks = 0]() mutable {
    if (++looks == 3) world_->release(demo_);
  };
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_FALSE(world_->sandbox(demo_));
}

TEST_P(Everywhere, DeleteHandsThePolicyOn) {
  keep_while_deleting();
  EXPECT_EQ(type({"delete", "demo", "--policy", "Leave"}), kDone) << err_.str();
  const auto sandbox = world_->sandbox(demo_);
  ASSERT_TRUE(sandbox && sandbox->deleting());
  EXPECT_EQ(sandbox->spec.deletion_policy, api::DeletionPolicy::kLeave);
}

TEST_P(Everywhere, ApplyDeclaresAndWaitsForTheNewSpec) {
  report("Ready", "Running");
  controller = [&] { report("Ready", "Running"); };
  EXPECT_EQ(type({"apply", "-f", "-", "--wait"},
                 manifest_of(demo_) + "  keepAlive: {timeoutSeconds: 600}\n"),
            kDone)
      << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("sandbox/demo applied in "));
  EXPECT_EQ(world_->sandbox(demo_)->spec.keep_alive.timeout, base::Seconds(600));
  EXPECT_EQ(type({"apply", "-f", "-"}, manifest_of({"team", "new"})), kDone) << err_.str();
  EXPECT_TRUE(world_->sandbox({"team", "new"}));
}

TEST_P(Everywhere, ApplyShowsWhatIsWrongAndChangesNothing) {
  const std::string good = manifest_of({"default", "good"});
  EXPECT_EQ(
      type({"apply", "-f", "-"}, good + "---\napiVersion: sandfleet.dev/v1alpha1\n"
                                        "kind: Sandbox\nmetadata: {name: bad}\n"
                                        "spec: {template: {id: base}, desiredState: Pause}\n"),
      kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("stdin.yaml:11:"));
  EXPECT_THAT(err_.str(), HasSubstr("spec.desiredState"));
  EXPECT_FALSE(world_->sandbox({"default", "good"}));
  EXPECT_FALSE(world_->sandbox({"default", "bad"}));
  EXPECT_EQ(type({"apply", "-f", "/nowhere/missing.yaml"}), kNotFound);
}

}  // namespace
}  // namespace cli
