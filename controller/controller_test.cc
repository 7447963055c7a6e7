#include "controller/controller.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>

#include "controller/metrics.h"
#include "libs/api/reasons.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/state_reader.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

// The machine's clock, some time ahead.
class AheadClock final : public base::Clock {
 public:
  base::Moment now() const override { return clock_.now() + ahead_.load(); }
  base::WallTime wall() const override { return clock_.wall() + ahead_.load(); }
  void skip(base::Milliseconds time) { ahead_ = ahead_.load() + time; }

 private:
  const base::SystemClock clock_;
  std::atomic<base::Milliseconds> ahead_{base::Milliseconds(0)};
};

// An executor that answers everywhere, and does as told.
class Inside final : public Reach {
 public:
  base::Result<wire::Health> prepare(const Target&, bool, const OnStep& on_step,
                                     std::stop_token) override {
    on_step("sending the executor");
    std::unique_lock lock(mutex_);
    ++preparing_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    return health_;
  }
  void hold_preparation() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_preparation_go() {
    std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void wait_for_preparation(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return preparing_ >= number; });
  }
  base::Result<wire::Health> health(const Target&, std::stop_token) override {
    std::lock_guard lock(mutex_);
    return health_;
  }
  base::Result<wire::Activity> activity(const Target&, std::stop_token) override {
    return wire::Activity{};
  }
  base::Result<wire::Health> quiesce(const Target&, const wire::Quiesce&,
                                     std::stop_token) override {
    std::lock_guard lock(mutex_);
    return health_;
  }
  base::Result<wire::Health> resumed(const Target&, const wire::Resumed& resumed,
                                     std::stop_token) override {
    std::lock_guard lock(mutex_);
    health_.identity = resumed.identity;
    return health_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int preparing_ = 0;
  bool held_ = false;
  wire::Health health_{.instance = "i-1"};
};

// A mandate that comes and goes.
class Office final : public Mandate {
 public:
  explicit Office(const base::Clock& clock) : began_(clock.now()) {}
  bool may_act(const std::string&) const override { return held; }
  base::Moment since(const std::string&) const override { return began_; }
  std::atomic<bool> held = true;

 private:
  const base::Moment began_;
};

// The whole program but main, on a scratch folder and a provider in memory.
class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    store_->on_sandbox_change([this](const api::Key& key) { queue_.add(key); });
    store_->on_provider_change([this](const std::string& name) { news_.add(name); });
    write("provider",
          "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: default}\n"
          "spec:\n  api: {url: \"http://127.0.0.1:1\"}\n"
          "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n");
    declare("Running");
    controller_.start();
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / "manifests" / (name + ".yaml")) << text;
  }
  void declare(const std::string& desired) {
    write("one",
          "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: one}\n"
          "spec:\n  template: {id: base}\n  desiredState: " +
              desired + "\n");
    EXPECT_TRUE(store_->scan_once());
  }
  std::shared_ptr<const api::Sandbox> sandbox() const {
    return store_->find_sandbox({"default", "one"});
  }
  bool wait_until(const std::function<bool()>& fact) const {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!fact() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
    return fact();
  }
  std::string state_of(const std::string& name) const {
    const auto found = store_->find_sandbox({"default", name});
    return found ? found->status.state : "";
  }
  bool becomes_ready() const {
    return wait_until([&] { return sandbox()->status.state == "Running"; });
  }
  base::Result<std::string> key() const {
    if (!key_trouble_.load()) return std::string("key");
    return base::error(*key_trouble_.load(), "no key");
  }
  // How a condition of the provider stands, and why.
  std::string provider_condition(std::string_view type) const {
    const auto provider = store_->find_provider("default");
    for (const auto& each : provider->status.conditions)
      if (each.type == type) return each.status + " " + each.reason;
    return "";
  }
  void declare_another(const std::string& name = "two") {
    write(name, "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: " + name +
                    "}\nspec:\n  template: {id: base}\n");
    EXPECT_TRUE(store_->scan_once());
  }
  // The call that is held is answered once the controller was told to stop.
  void stop_meanwhile() {
    on_its_way_.wait();
    std::jthread stopping([this] { controller_.stop(); });
    EXPECT_TRUE(wait_until([&] { return !controller_.trouble().empty(); }));
    answer_.count_down();
  }
  void hold(e2b::Operation held) {
    cloud_->before([this, held](e2b::Operation operation, const std::string&) {
      if (operation != held) return;
      if (!is_held_.exchange(true)) on_its_way_.count_down();
      answer_.wait();
    });
  }
  static std::unique_ptr<manifests::FileStore> open(const std::filesystem::path& folder,
                                                    const base::Clock& clock) {
    std::filesystem::create_directories(folder / "manifests");
    auto opened = manifests::FileStore::open(
        {.manifests = folder / "manifests", .state = folder / "state", .machine_id = "machine"},
        clock);
    return *std::move(opened);
  }

  const base::TemporaryFolder folder_;
  AheadClock clock_;
  std::latch on_its_way_{1}, answer_{1};
  std::atomic<bool> is_held_ = false;
  std::atomic<std::optional<base::ErrorCode>> key_trouble_{std::nullopt};
  std::shared_ptr<e2b::FakeCloud> cloud_ = std::make_shared<e2b::FakeCloud>(clock_);
  metrics::Registry registry_{metrics_table()};
  kube::Queue queue_{clock_};
  ProviderNews news_;
  std::unique_ptr<manifests::FileStore> store_ = open(folder_.path(), clock_);
  Connections connections_{
      *store_,
      clock_,
      {[this](const auto&) { return key(); }, [this](const auto&) { return cloud_; },
       [this](const std::string& name) { queue_what_waits_for_room(queue_, *store_, name); }}};
  Memories memories_;
  Inside inside_;
  Office mandate_{clock_};
  Engine engine_{clock_, {}, heartbeat_news(registry_, memories_, *store_, queue_, clock_)};
  Pool pool_{{.threads = 4}, [this](const api::Key& key) { queue_.add(key); }};
  MetricsObserver observer_{registry_};
  Reconciler reconciler_{
      {*store_, connections_, pool_, engine_, inside_, memories_, mandate_, clock_, observer_, 1}};
  Sweeper sweeper_{*store_, connections_, clock_, 120s};
  Controller controller_{{*store_, queue_, reconciler_, connections_, engine_, pool_, sweeper_,
                          memories_, mandate_, clock_, registry_, news_},
                         {.workers = 2}};
};

TEST_F(ControllerTest, OnlyKeepsLeasesWithoutTheMandate) {
  ASSERT_TRUE(becomes_ready());
  mandate_.held = false;
  declare("Paused");
  ASSERT_TRUE(wait_until([&] { return queue_.stats().depth == 0 && queue_.stats().in_work == 0; }));
  const auto lists = cloud_->count(e2b::Operation::kList);
  const auto beats = cloud_->count(e2b::Operation::kExtend);
  clock_.skip(61s);
  EXPECT_TRUE(wait_until([&] { return cloud_->count(e2b::Operation::kExtend) > beats; }));
  EXPECT_EQ(cloud_->count(e2b::Operation::kList), lists);
  EXPECT_EQ(cloud_->count(e2b::Operation::kPause), 0u);
  mandate_.held = true;
  news_.add("default");
  EXPECT_TRUE(wait_until([&] { return sandbox()->status.state == "Paused"; }));
}

TEST_F(ControllerTest, TellsWhichStepOfAPreparationIsSlowWhileItIs) {
  ASSERT_TRUE(becomes_ready());
  inside_.hold_preparation();
  declare_another();
  inside_.wait_for_preparation(2);
  clock_.skip(11s);
  const auto why = [&]() -> std::string {
    const auto two = store_->find_sandbox({"default", "two"});
    const auto* ready = api::find_condition(two->status, api::condition::kReady);
    return ready ? ready->message : "";
  };
  EXPECT_TRUE(wait_until([&] { return why().find("sending the executor") != std::string::npos; }))
      << why();
  clock_.skip(11s);
  inside_.let_preparation_go();
  EXPECT_TRUE(wait_until([&] { return why() == "run 1"; })) << why();
  const auto events = manifests::StateReader(folder_.path() / "state").events();
  ASSERT_TRUE(events);
  std::int64_t told = 0;
  for (const auto& each : *events)
    if (each.event.reason == "SlowStep") told += each.count;
  EXPECT_EQ(told, 1);
}

TEST(NewsOfFailedWays, MakeAnExecutorDueAtOnceForWhoActsForIt) {
  base::FakeClock clock;
  Memories memories;
  kube::Queue queue(clock);
  api::Sandbox sandbox;
  sandbox.metadata.key = {"default", "box"};
  sandbox.metadata.uid = "u1";
  const auto failed = news_of_failed_ways(memories, queue, clock);
  failed(sandbox);
  EXPECT_EQ(memories.size(), 0u) << "another acts for it";
  EXPECT_FALSE(queue.try_next());
  memories.update("u1", [&](Memory& memory) {
    memory.executor = {.kind = ExecutorView::Kind::kAnswering, .ask_at = clock.now() + 300s};
  });
  failed(sandbox);
  EXPECT_EQ(memories.recall("u1").executor.ask_at, clock.now());
  EXPECT_EQ(queue.try_next(), sandbox.metadata.key);
}

TEST_F(ControllerTest, GoesFromStepToStepInOneTurn) {
  const auto is_idle = [&] {
    const auto queue = queue_.stats();
    return queue.depth == 0 && queue.in_work == 0 && pool_.size() == 0;
  };
  const auto turns = [&] {
    double all = 0;
    for (const char* result : {"success", "requeue_after", "error"})
      all += registry_.counter("controller_runtime_reconcile_total", {kQueueName, result}).value();
    return all;
  };
  ASSERT_TRUE(becomes_ready());
  ASSERT_TRUE(wait_until(is_idle));
  const double before = turns();
  declare_another();
  ASSERT_TRUE(wait_until([&] { return state_of("two") == "Running"; }));
  ASSERT_TRUE(wait_until(is_idle));
  EXPECT_EQ(turns() - before, 4)
      << "up to a create, to a preparation, to the telling of its run, and to the end";
  for (const std::size_t more : {1, 2}) {  // The second begins when all of the first is done.
    const auto lists = cloud_->count(e2b::Operation::kList);
    clock_.skip(31s);
    ASSERT_TRUE(wait_until([&] { return cloud_->count(e2b::Operation::kList) > lists; })) << more;
  }
  ASSERT_TRUE(wait_until(is_idle));
  EXPECT_EQ(turns() - before, 4) << "a list that shows what it made is no news";
}

TEST_F(ControllerTest, LooksAtWhatIsBoundByOneListWhenItBegins) {
  ASSERT_TRUE(becomes_ready());
  controller_.stop();
  const auto gets = cloud_->count(e2b::Operation::kGet);
  Memories memories;
  Connections connections(
      *store_, clock_,
      {[](const auto&) { return std::string("key"); }, [this](const auto&) { return cloud_; }});
  Pool pool({.threads = 1}, [this](const api::Key& key) { queue_.add(key); });
  Reconciler reconciler(
      {*store_, connections, pool, engine_, inside_, memories, mandate_, clock_, observer_});
  Sweeper sweeper(*store_, connections, clock_, 120s);
  Controller next({*store_, queue_, reconciler, connections, engine_, pool, sweeper, memories,
                   mandate_, clock_, registry_, news_},
                  {.workers = 2});
  next.start();
  EXPECT_TRUE(wait_until([&] { return engine_.stats().kept == 1; }));
  EXPECT_EQ(cloud_->count(e2b::Operation::kGet), gets);
}

TEST_F(ControllerTest, SaysOfAProviderWhatIsWrongWithItsKey) {
  const auto becomes = [&](const std::string& word) {
    news_.add("default");
    return wait_until([&] { return provider_condition("CredentialsValid") == word; });
  };
  EXPECT_TRUE(becomes("True CredentialsAccepted"));
  key_trouble_ = base::ErrorCode::kInvalid;
  EXPECT_TRUE(becomes("False CredentialsInvalid")) << provider_condition("CredentialsValid");
  EXPECT_EQ(provider_condition("Ready"), "False CredentialsInvalid");
  key_trouble_ = base::ErrorCode::kNotFound;
  EXPECT_TRUE(becomes("False CredentialsMissing")) << provider_condition("CredentialsValid");
  key_trouble_ = std::nullopt;
  EXPECT_TRUE(becomes("True CredentialsAccepted"));
}

TEST_F(ControllerTest, WarnsOfAProviderThatSettlesTooSoon) {
  const auto told = [&] {
    const auto provider = store_->find_provider("default");
    for (const auto& each : provider->status.conditions)
      if (each.type == "Ready") return each.status + ": " + each.message;
    return std::string();
  };
  EXPECT_TRUE(wait_until([&] { return told() == "True: "; })) << told();
  write("provider",
        "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: default}\n"
        "spec:\n  api: {url: \"http://127.0.0.1:1\"}\n  settleSeconds: 10\n"
        "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n");
  EXPECT_TRUE(store_->scan_once());
  EXPECT_TRUE(wait_until([&] {
    return told().starts_with("True: spec.settleSeconds is 10, and providers may take 70 s");
  })) << told();
}

TEST_F(ControllerTest, StopsWithoutTouchingASandbox) {
  ASSERT_TRUE(becomes_ready());
  const auto before = cloud_->live();
  const auto changes = [&] {
    return cloud_->count(e2b::Operation::kKill) + cloud_->count(e2b::Operation::kPause) +
           cloud_->count(e2b::Operation::kConnect);
  };
  controller_.stop();
  EXPECT_EQ(changes(), 0u);
  EXPECT_EQ(cloud_->live().size(), 1u);
  EXPECT_EQ(cloud_->live()[0].started_at, before[0].started_at);
  EXPECT_EQ(sandbox()->status.state, "Running");
  EXPECT_EQ(controller_.trouble(), "not working yet, or no longer");
}

TEST_F(ControllerTest, LetsGoOfAProviderThatIsGone) {
  ASSERT_TRUE(becomes_ready());
  const auto connected = cloud_.use_count();
  write("provider-other",
        "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata: {name: other}\n"
        "spec:\n  api: {url: \"http://127.0.0.1:3\"}\n"
        "  data: {url: \"http://127.0.0.1:4\", routing: Header}\n");
  EXPECT_TRUE(store_->scan_once());
  ASSERT_TRUE(wait_until([&] { return cloud_.use_count() > connected; }));
  std::filesystem::remove(folder_.path() / "manifests/provider-other.yaml");
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(store_->scan_once());
    return cloud_.use_count() == connected;
  }));
  EXPECT_TRUE(connections_.session("default")->polled) << "the other one is kept";
}

TEST_F(ControllerTest, FinishesAPauseThatIsOnItsWay) {
  ASSERT_TRUE(becomes_ready());
  hold(e2b::Operation::kPause);
  declare("Paused");
  stop_meanwhile();
  EXPECT_EQ(cloud_->live().at(0).state, e2b::State::kPaused);
  EXPECT_EQ(cloud_->count(e2b::Operation::kKill), 0u);
}

TEST_F(ControllerTest, FinishesACreateThatIsOnItsWayAndBindsIt) {
  ASSERT_TRUE(becomes_ready());
  hold(e2b::Operation::kCreate);
  declare_another();
  stop_meanwhile();
  EXPECT_EQ(cloud_->live().size(), 2u);
  const auto two = store_->find_sandbox({"default", "two"});
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->status.sandbox_id.empty());
  EXPECT_TRUE(cloud_->find(two->status.sandbox_id));
  EXPECT_EQ(cloud_->count(e2b::Operation::kKill), 0u);
}

TEST_F(ControllerTest, GivesTheRoomOfWhatEndsToWhatWaitsForIt) {  // I-429Q
  ASSERT_TRUE(becomes_ready());
  cloud_->set_quota(1);
  declare_another();
  const auto is_told = [&] {
    const auto two = store_->find_sandbox({"default", "two"});
    const auto* ready = api::find_condition(two->status, api::condition::kReady);
    return ready && ready->reason == api::reason::kProviderQuotaExceeded;
  };
  ASSERT_TRUE(wait_until(is_told));
  const base::Moment told = clock_.now();
  EXPECT_EQ(cloud_->count(e2b::Operation::kCreate), 2u);
  std::filesystem::remove(folder_.path() / "manifests/one.yaml");
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(store_->scan_once());
    return state_of("two") == "Running";
  })) << state_of("two");
  EXPECT_LT(clock_.now() - told, GateOptions{}.quota_hold - 5s) << "by time it would be later";
}

// As many hang as would keep every worker busy.
TEST_F(ControllerTest, CreatesAndTellsWhileKillsHang) {
  ASSERT_TRUE(becomes_ready());
  const std::vector<std::string> names = {"one", "two", "three"};
  for (const auto& name : names) {
    if (name != "one") declare_another(name);
    ASSERT_TRUE(wait_until([&] { return state_of(name) == "Running"; }));
  }
  hold(e2b::Operation::kKill);
  for (const auto& name : names)
    std::filesystem::remove(folder_.path() / "manifests" / (name + ".yaml"));
  for (const auto& name : names)
    EXPECT_TRUE(wait_until([&] {
      EXPECT_TRUE(store_->scan_once());
      return state_of(name) == "Deleting";
    })) << state_of(name);
  declare_another("four");
  EXPECT_TRUE(wait_until([&] { return state_of("four") == "Running"; }));
  const auto* deleting = api::find_condition(sandbox()->status, api::condition::kDeleting);
  ASSERT_TRUE(deleting);
  EXPECT_EQ(deleting->status, "True");
  answer_.count_down();
  EXPECT_TRUE(wait_until([&] { return cloud_->live().size() == 1; }));
  EXPECT_TRUE(wait_until([&] { return !sandbox(); }));
}

// As many sandboxes as there are workers are not known how they stand, and nobody tells.
TEST_F(ControllerTest, CreatesWhileLooksHang) {
  ASSERT_TRUE(becomes_ready());
  declare_another();
  ASSERT_TRUE(wait_until([&] { return state_of("two") == "Running"; }));
  hold(e2b::Operation::kGet);
  for (const char* name : {"one", "two"}) {
    const auto each = store_->find_sandbox({"default", name});
    memories_.update(each->metadata.uid, [&](Memory& memory) { outdate(memory, clock_.now()); });
    queue_.add(each->metadata.key);
  }
  on_its_way_.wait();
  declare_another("three");
  const auto three = [&] { return store_->find_sandbox({"default", "three"}); };
  EXPECT_TRUE(wait_until([&] { return !three()->status.sandbox_id.empty(); }));
  EXPECT_EQ(state_of("one"), "Running") << "a look under way is no news";
  answer_.count_down();
}

TEST_F(ControllerTest, MeansNoCreateOnceItStops) {
  ASSERT_TRUE(becomes_ready());
  hold(e2b::Operation::kCreate);
  declare_another();
  on_its_way_.wait();
  std::jthread stopping([this] { controller_.stop(); });
  EXPECT_TRUE(wait_until([&] { return !controller_.trouble().empty(); }));
  declare_another("three");
  answer_.count_down();
  stopping.join();
  const auto three = store_->find_sandbox({"default", "three"});
  ASSERT_TRUE(three);
  EXPECT_FALSE(api::attempt_of(three->metadata)) << "the next one need not wait for it to settle";
}

TEST_F(ControllerTest, BeginsNothingOnceItStops) {
  ASSERT_TRUE(becomes_ready());
  controller_.stop();
  declare_another();
  EXPECT_EQ(cloud_->count(e2b::Operation::kCreate), 1u);
}

}  // namespace
}  // namespace controller
