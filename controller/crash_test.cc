// Kills the controller between any two of its steps, alone or with the power of its machine, in
// simulated time and one thread: the real store on a scratch folder, a provider in memory whose
// answers are lost or late, and the inside of its sandboxes. Whatever the step, the life of a
// Sandbox must come out the same.

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "controller/attach/admission.h"
#include "controller/controller.h"
#include "controller/heartbeat/engine.h"
#include "controller/poll/connections.h"
#include "controller/reconcile/reconciler.h"
#include "controller/sweep/sweeper.h"
#include "libs/api/reasons.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/time.h"
#include "libs/e2b/testing/fake_cloud.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/requests.h"
#include "libs/manifests/testing/power_loss.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using e2b::Fault;

struct Crash {};

// Where the process dies: before or after its n-th step that others can see.
struct Plan {
  int at = -1;
  bool after = false;
  std::uint64_t power_loss = 0;  // Not 0: its machine dies with it, and this says how.
};

// Counts the steps, and dies at the planned one.
class Fate {
 public:
  void plan(Plan plan) { plan_ = plan, step_ = 0; }
  void before() {
    if (++step_ == plan_.at && !plan_.after) die();
  }
  void after() {
    if (step_ == plan_.at && plan_.after) die();
  }
  int steps() const { return step_; }
  bool died() const { return died_; }
  std::uint64_t power_loss() const { return plan_.power_loss; }
  int events = 0;  // Told of Sandboxes, in all lives.

 private:
  void die() {
    plan_.at = -1;
    died_ = true;
    throw Crash{};
  }
  Plan plan_;
  int step_ = 0;
  bool died_ = false;
};

// The store; each write is a step.
class MortalStore final : public api::ResourceStore {
 public:
  MortalStore(api::ResourceStore& store, Fate& fate) : store_(store), fate_(fate) {}

  std::shared_ptr<const api::Sandbox> find_sandbox(const api::Key& key) const override {
    return store_.find_sandbox(key);
  }
  std::shared_ptr<const api::Sandbox> find_by_uid(const std::string& uid) const override {
    return store_.find_by_uid(uid);
  }
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes() const override {
    return store_.sandboxes();
  }
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes_of(
      const std::string& provider) const override {
    return store_.sandboxes_of(provider);
  }
  std::shared_ptr<const api::SandboxProvider> find_provider(
      const std::string& name) const override {
    return store_.find_provider(name);
  }
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers() const override {
    return store_.providers();
  }
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key& key) override {
    return store_.get_sandbox(key);
  }
  base::Result<std::string> get_secret(const api::Key& secret, const std::string& key) override {
    return store_.get_secret(secret, key);
  }
  base::Result<api::Sandbox> update_metadata(const api::Key& key, const api::Expected& expected,
                                             const std::map<std::string, std::string>& annotations,
                                             const std::vector<std::string>& finalizers) override {
    return step([&] { return store_.update_metadata(key, expected, annotations, finalizers); });
  }
  base::Result<api::Sandbox> update_status(const api::Key& key, const api::Expected& expected,
                                           const api::SandboxStatus& status,
                                           Durability durability) override {
    return step([&] { return store_.update_status(key, expected, status, durability); });
  }
  base::Result<api::Sandbox> bind(const api::Key& key, const std::string& uid,
                                  const api::Attempt& attempt,
                                  const api::SandboxStatus& status) override {
    return step([&] { return store_.bind(key, uid, attempt, status); });
  }
  base::Result<api::SandboxProvider> update_provider_status(
      const std::string& name, const api::Expected& expected,
      const api::ProviderStatus& status) override {
    return step([&] { return store_.update_provider_status(name, expected, status); });
  }
  base::Result<base::Done> hold_provider(const std::string& name, const std::string& uid,
                                         bool held) override {
    return store_.hold_provider(name, uid, held);
  }
  base::Result<base::Done> delete_sandbox(const api::Key& key, const std::string& uid) override {
    return step([&] { return store_.delete_sandbox(key, uid); });
  }
  base::Result<base::Done> request_wake(const api::Key& key, const api::Expected& expected,
                                        const std::string& value) override {
    return step([&] { return store_.request_wake(key, expected, value); });
  }
  void record_event(const api::Sandbox& regarding, const api::Event& event) override {
    ++fate_.events;
    store_.record_event(regarding, event);
  }
  base::Result<base::Done> add_release(const Release& release) override {
    return step([&] { return store_.add_release(release); });
  }
  base::Result<std::vector<Release>> releases(const std::string& provider) override {
    return store_.releases(provider);
  }
  base::Result<base::Done> remove_release(const std::string& provider,
                                          const std::string& id) override {
    return step([&] { return store_.remove_release(provider, id); });
  }
  base::Result<base::Done> keep_way_in(const api::Key& key, const std::string& uid,
                                       const WayIn& way) override {
    return step([&] { return store_.keep_way_in(key, uid, way); });
  }
  base::Result<std::optional<WayIn>> kept_way_in(const std::string& uid) override {
    return store_.kept_way_in(uid);
  }
  void on_sandbox_change(std::function<void(const api::Key&)> changed) override {
    store_.on_sandbox_change(std::move(changed));
  }
  void on_provider_change(std::function<void(const std::string&)> changed) override {
    store_.on_provider_change(std::move(changed));
  }
  std::string fleet_id() const override { return store_.fleet_id(); }
  base::Result<std::string> fleet_key() override { return store_.fleet_key(); }

 private:
  template <typename Write>
  auto step(Write write) -> decltype(write()) {
    fate_.before();
    auto result = write();
    fate_.after();
    return result;
  }
  api::ResourceStore& store_;
  Fate& fate_;
};

// What is inside the sandboxes: one executor each, and its marker, which follows what happens to
// the sandbox.
class Insides final : public Reach {
 public:
  Insides(e2b::FakeCloud& cloud, Fate& fate, const base::Clock& clock)
      : cloud_(cloud), fate_(fate), clock_(clock) {
    cloud_.on_change([this](const std::string& id, e2b::Change change) { follow(id, change); });
  }

  base::Result<wire::Health> prepare(const Target& target, bool, const OnStep&,
                                     std::stop_token) override {
    if (refuses_) {
      ++refused_;
      return base::Error{base::ErrorCode::kDenied, "another's executor"};
    }
    return step(target, [this](Inside& inside) {
      if (!inside.instance.empty()) return;
      inside.instance = base::random_hex(4);
      inside.active_at = clock_.now();
    });
  }
  base::Result<wire::Health> health(const Target& target, std::stop_token) override {
    ++asked_;
    const auto sandbox = cloud_.find(target.handle.id);
    const bool runs = sandbox && sandbox->state == e2b::State::kRunning;
    if (runs && reachable_ && insides_[target.handle.id].instance.empty())
      return base::Error{base::ErrorCode::kNotFound, "nobody listens"};
    if (!reachable_) return base::Error{base::ErrorCode::kUnavailable, "no answer from inside"};
    return step(target, [](Inside&) {});
  }
  base::Result<wire::Activity> activity(const Target& target, std::stop_token) override {
    ++looks_;
    if (is_old_) return base::Error{base::ErrorCode::kUnavailable, "it answered with 404"};
    base::Milliseconds idle_for{};
    CHECK_OK(step(target, [&](Inside& inside) { idle_for = clock_.now() - inside.active_at; }));
    if (used_after_a_look_) use(target.handle.id);
    return wire::Activity{idle_for.count()};
  }
  base::Result<wire::Health> quiesce(const Target& target, const wire::Quiesce& quiesce,
                                     std::stop_token) override {
    return step(target, [&](Inside& inside) {
      const base::Milliseconds needed(quiesce.if_idle_for_ms.value_or(0));
      inside.quiesced_until = {};
      if (clock_.now() - inside.active_at >= needed)
        inside.quiesced_until = clock_.now() + base::Seconds(quiesce.deadline_seconds);
    });
  }
  base::Result<wire::Health> resumed(const Target& target, const wire::Resumed& resumed,
                                     std::stop_token) override {
    return step(target, [&](Inside& inside) {
      inside.quiesced_until = {};
      inside.active_at = clock_.now();
      inside.marker = resumed.identity;
    });
  }
  // A harness wants something there, which begins unless it stands still.
  void use(const std::string& id) {
    if (!quiesced(id)) insides_[id].active_at = clock_.now();
  }
  // Its executors are of a version that does not know whether anything is active.
  void be_old(bool old) { is_old_ = old; }
  int looks() const { return looks_; }  // How often that was asked.
  void use_after_each_look(bool uses) { used_after_a_look_ = uses; }
  // For how long the one that was last paused had been idle then; and the one that was last ended.
  base::Milliseconds idle_when_paused() const { return idle_when_paused_; }
  base::Milliseconds idle_when_ended() const { return idle_when_ended_; }
  wire::Identity marker(const std::string& id) { return insides_[id].marker; }
  bool quiesced(const std::string& id) { return clock_.now() < insides_[id].quiesced_until; }
  void lose_answers(double share) { lost_ = share; }
  void refuse(bool refuses) { refuses_ = refuses; }  // Every executor, however often replaced.
  // The executor of that sandbox ends, and nothing inside starts it again.
  void end_executor(const std::string& id) { insides_[id].instance.clear(); }
  std::string executor(const std::string& id) { return insides_[id].instance; }
  void cut_off(bool cut) { reachable_ = !cut; }  // For whoever asks how an executor is.
  int asked() const { return asked_; }
  int refused() const { return refused_; }
  int visits() const { return visits_; }
  int turned_away() const { return turned_away_; }  // Those who came without the right tokens.

 private:
  struct Inside {
    std::string instance;
    wire::Identity marker, saved;
    base::Moment quiesced_until = {}, active_at = {};
  };

  template <typename Effect>
  base::Result<wire::Health> step(const Target& target, Effect effect) {
    const base::Error silent{base::ErrorCode::kUnavailable, "no answer from inside"};
    fate_.before();
    const auto sandbox = cloud_.find(target.handle.id);
    if (!sandbox || sandbox->state != e2b::State::kRunning) return silent;
    if (target.handle != cloud_.truth_of(target.handle.id)) {
      ++turned_away_;
      return silent;
    }
    ++visits_;
    Inside& inside = insides_[target.handle.id];
    effect(inside);
    fate_.after();
    if (std::bernoulli_distribution(lost_)(random_)) return silent;
    return wire::Health{.instance = inside.instance,
                        .identity = inside.marker,
                        .quiesced = quiesced(target.handle.id)};
  }
  void follow(const std::string& id, e2b::Change change) {
    Inside& inside = insides_[id];
    if (change == e2b::Change::kPaused) {
      inside.saved = inside.marker;
      idle_when_paused_ = clock_.now() - inside.active_at;
    }
    if (change == e2b::Change::kKilled) idle_when_ended_ = clock_.now() - inside.active_at;
    if (change == e2b::Change::kRolledBack) inside.marker = inside.saved;
  }

  e2b::FakeCloud& cloud_;
  Fate& fate_;
  const base::Clock& clock_;
  std::map<std::string, Inside> insides_;
  bool used_after_a_look_ = false, is_old_ = false;
  int looks_ = 0;
  base::Milliseconds idle_when_paused_{}, idle_when_ended_{};
  double lost_ = 0;
  bool refuses_ = false;
  bool reachable_ = true;
  int refused_ = 0, asked_ = 0;
  int visits_ = 0, turned_away_ = 0;
  std::minstd_rand random_{7};
};

// Operations that run when the test says so, on its own thread.
class Inline final : public Operations {
 public:
  bool start(Operation operation) override {
    if (running(operation.uid)) return false;
    waiting_.push_back(std::move(operation));
    return true;
  }
  std::optional<std::string> running(const std::string& uid) const override {
    for (const auto& operation : waiting_)
      if (operation.uid == uid) return operation.name;
    return std::nullopt;
  }
  std::optional<api::Key> run_one() {
    if (waiting_.empty()) return std::nullopt;
    waiting_.front().work({});
    api::Key key = waiting_.front().key;
    waiting_.pop_front();
    return key;
  }

 private:
  std::deque<Operation> waiting_;
};

// What another hand did, or nobody, as it is counted.
class Drift final : public Observer {
 public:
  void drifted(std::string_view kind) override { ++counts[std::string(kind)]; }
  void paused_for_idleness() override { ++counts["idle pauses"]; }
  void woke() override { ++counts["wakes"]; }
  std::map<std::string, int> counts;
};

// One life of the process: everything that a crash throws away.
class Life {
 public:
  Life(const std::filesystem::path& folder, const base::FakeClock& clock,
       std::shared_ptr<e2b::FakeCloud> cloud, Insides& insides, Drift& drift, Fate& fate,
       manifests::PowerLoss& power)
      : clock_(clock),
        cloud_(std::move(cloud)),
        files_(open(folder, clock, power)),
        store_(*files_, fate),
        connections_(
            store_, clock,
            {[](const auto&) { return std::string("key"); }, [this](const auto&) { return cloud_; },
             [this](const std::string& provider) {
               queue_what_waits_for_room(queue_, store_, provider);
             }}),
        queue_(clock),
        engine_(clock, {}, {.missed = [this](const std::string& uid) { missed(uid); }}),
        reconciler_({store_, connections_, operations_, engine_, insides, memories_, mandate_,
                     clock, drift}),
        sweeper_(store_, connections_, clock, 120s) {
    store_.on_sandbox_change([this](const api::Key& key) { queue_.add(key); });
    next_poll_ = next_sweep_ = clock.now();
    next_sweep_ += 60s;
  }

  // Does whatever is due; false when nothing was.
  bool turn() {
    EXPECT_TRUE(files_->scan_once());
    cloud_->run_callbacks();
    engine_.step();
    cloud_->run_callbacks();
    bool busy = poll() || sweep();
    // A step that time alone can end must wait for it.
    int passes = 0;
    while (const auto key = queue_.try_next()) {
      if (++passes > 200) {
        ADD_FAILURE() << "a hot loop";
        throw std::runtime_error("a hot loop");
      }
      queue_.done(*key, reconciler_.reconcile(*key));
      busy = true;
    }
    while (const auto key = operations_.run_one()) {
      queue_.add(*key);
      busy = true;
    }
    return busy;
  }
  std::shared_ptr<const api::Sandbox> sandbox() const {
    return files_->find_sandbox({"default", "one"});
  }
  manifests::FileStore& files() { return *files_; }

 private:
  static std::unique_ptr<manifests::FileStore> open(const std::filesystem::path& folder,
                                                    const base::Clock& clock,
                                                    manifests::PowerLoss& power) {
    auto opened = manifests::FileStore::open(
        {.manifests = folder / "manifests",
         .state = folder / "state",
         .machine_id = "machine",
         .before_step =
             [&power](const std::filesystem::path& path, manifests::Disk::Step step) {
               power.before(path, step);
               return base::Done{};
             }},
        clock);
    if (!opened) throw std::runtime_error(opened.error().message);
    return *std::move(opened);
  }
  void missed(const std::string& uid) {
    memories_.update(uid, [&](Memory& memory) { outdate(memory, clock_.now()); });
    for (const auto& sandbox : store_.sandboxes()) queue_.add(sandbox->metadata.key);
  }
  bool poll() {
    if (clock_.now() < next_poll_) return false;
    next_poll_ = clock_.now() + 30s;
    if (!connections_.poll("default", {})) next_poll_ = clock_.now() + 2s;
    for (const auto& sandbox : store_.sandboxes()) queue_.add(sandbox->metadata.key);
    return true;
  }
  bool sweep() {
    if (clock_.now() < next_sweep_) return false;
    next_sweep_ = clock_.now() + 60s;
    (void)sweeper_.sweep("default", {});
    return true;
  }

  const base::FakeClock& clock_;
  const std::shared_ptr<e2b::FakeCloud> cloud_;
  const std::unique_ptr<manifests::FileStore> files_;
  MortalStore store_;
  Connections connections_;
  kube::Queue queue_;
  Memories memories_;
  Inline operations_;
  Engine engine_;
  const SoleMandate mandate_{clock_};
  Reconciler reconciler_;
  Sweeper sweeper_;
  base::Moment next_poll_, next_sweep_;
};

struct Weather {
  std::uint64_t seed = 0;  // 0: every answer arrives.
  int settle_seconds = 90;
  std::string policy = "Kill";
  bool tokens_told_once = false;
};

// The world that outlives crashes, and what must never be true of it.
class World {
 public:
  explicit World(const Weather& weather) : weather_(weather) {
    std::filesystem::create_directories(folder_ / "manifests");
    std::filesystem::create_directories(folder_ / "state");
    write("provider",
          "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\n"
          "metadata: {name: default}\nspec:\n  api: {url: \"http://127.0.0.1:1\"}\n"
          "  data: {url: \"http://127.0.0.1:2\", routing: Header}\n  settleSeconds: " +
              std::to_string(weather.settle_seconds) + "\n");
    cloud_->before([this](e2b::Operation operation, const std::string&) {
      fate_.before();
      if (operation == e2b::Operation::kCreate) check_intent();
      if (on_call) on_call(operation);
    });
    cloud_->after([this](e2b::Operation, const std::string&) { fate_.after(); });
    cloud_->hide_tokens(weather.tokens_told_once);
    if (weather.seed > 0) make_weather();
    life_ = begin();
  }
  ~World() {
    life_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void declare(const std::string& desired, const std::string& lifecycle = "{}") {
    if (life_) pass(2s);  // Two runs never begin at one moment.
    write("one",
          "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: one}\n"
          "spec:\n  template: {id: base}\n  desiredState: " +
              desired + "\n  deletionPolicy: " + weather_.policy + "\n  lifecycle: " + lifecycle +
              "\n");
  }
  // As the attach service does for whoever wants in.
  void attach() {
    const auto sandbox = life_->sandbox();
    const auto verdict = judge(sandbox.get(), sandbox->metadata.key);
    if (!std::holds_alternative<Wakes>(verdict)) return;
    const api::Metadata& metadata = sandbox->metadata;
    (void)life_->files().request_wake(metadata.key, {metadata.uid, metadata.resource_version},
                                      base::to_rfc3339(clock_.wall()));
  }
  std::string why(std::string_view type) const {
    const auto sandbox = life_->sandbox();
    const auto* found = sandbox ? api::find_condition(sandbox->status, type) : nullptr;
    return found ? std::string(found->reason) : "";
  }
  void ask_for_a_look() {
    EXPECT_TRUE(manifests::write_request(folder_ / "state", {.key = {"default", "one"}}));
  }
  void remove() { std::filesystem::remove(folder_ / "manifests/one.yaml"); }

  // Lives, dies and lives again until `done`, at most for a quarter of an hour of its own time.
  void run_until(const char* what, const std::function<bool()>& done) {
    const base::Moment limit = clock_.now() + 15min;
    int busy_turns = 0;  // Without any time passing.
    while (!done() && clock_.now() < limit && busy_turns < 100) {
      try {
        if (!life_) life_ = begin();
        if (life_->turn()) {
          ++busy_turns;
        } else {
          clock_.advance(500ms);
          busy_turns = 0;
        }
        check_binding();
      } catch (const Crash&) {
        life_.reset();
        if (fate_.power_loss() > 0) power_.strike(fate_.power_loss());
        if (after_a_crash) after_a_crash();
      }
      if (!life_) life_ = begin();
    }
    if (done()) return;
    const auto sandbox = life_->sandbox();
    ADD_FAILURE() << "never came: " << what << "; "
                  << (sandbox ? base::to_text(api::to_json(*sandbox), 1) : "no Sandbox")
                  << "\nlive at the provider: " << cloud_->live().size();
  }
  void pass(base::Milliseconds time) {
    const base::Moment until = clock_.now() + time;
    run_until("time", [&] { return clock_.now() >= until; });
  }

  bool ready() const { return condition("Ready") && !cloud_->live().empty(); }
  bool condition(std::string_view type) const {
    const auto sandbox = life_->sandbox();
    if (!sandbox || sandbox->status.observed_generation != sandbox->metadata.generation)
      return false;
    const auto* found = api::find_condition(sandbox->status, type);
    return found && found->status == "True";
  }
  bool gone() const { return !life_->sandbox(); }
  std::string bound() const { return life_->sandbox() ? life_->sandbox()->status.sandbox_id : ""; }

  void lose_state() {
    life_.reset();
    std::filesystem::remove_all(folder_ / "state");
    life_ = begin();
  }

  void restart() {
    life_.reset();
    life_ = begin();
  }
  // As if the power went before anything of the bind was written.
  bool loses_the_binding() {
    life_.reset();
    power_.strike(0);
    life_ = begin();
    return bound().empty();
  }
  void forget_tokens() { std::filesystem::remove_all(ways_in()); }
  bool keeps_a_token() const {
    return std::filesystem::exists(ways_in()) && !std::filesystem::is_empty(ways_in());
  }
  // What is written of it for people.
  std::string state_but_ways_in() const {
    std::string text;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "state"))
      if (entry.is_regular_file() && entry.path().parent_path() != ways_in())
        if (const auto content = base::read_file(entry.path())) text += *content;
    return text;
  }

  // Nothing else happens meanwhile: a provider that hangs, or a process that is stopped.
  void hang(base::Milliseconds time) { clock_.advance(time); }
  std::function<void(e2b::Operation)> on_call = {};  // As the provider gets it.
  std::function<void()> after_a_crash = {};          // Before it lives again.

  base::Moment now() const { return clock_.now(); }
  Fate& fate() { return fate_; }
  int events() const { return fate_.events; }
  void forget_events() { fate_.events = 0; }
  e2b::FakeCloud& cloud() { return *cloud_; }
  Insides& insides() { return insides_; }
  const Drift& drift() const { return drift_; }
  Life& life() { return *life_; }

 private:
  std::filesystem::path ways_in() const { return folder_ / "state/ways-in"; }
  static std::filesystem::path scratch() {
    const std::filesystem::path memory = "/dev/shm";
    const auto base = std::filesystem::is_directory(memory) && ::access("/dev/shm", W_OK) == 0
                          ? memory
                          : std::filesystem::temp_directory_path();
    return base / ("sandfleet-crash-" + base::random_hex(8));
  }
  std::unique_ptr<Life> begin() {
    return std::make_unique<Life>(folder_, clock_, cloud_, insides_, drift_, fate_, power_);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / "manifests" / (name + ".yaml")) << text;
  }
  void make_weather() {
    using enum e2b::Operation;
    cloud_->seed(weather_.seed);
    cloud_->set_list_lag(3s, 3s);
    for (const auto operation : {kCreate, kKill, kPause, kConnect, kExtend, kGet, kList}) {
      cloud_->chance(operation, {Fault::Kind::kReplyLost}, 0.1);
      cloud_->chance(operation, {Fault::Kind::kFailed500}, 0.05);
      cloud_->chance(operation, {Fault::Kind::kRateLimited}, 0.03);
      if (operation != kList) cloud_->chance(operation, {Fault::Kind::kNotSent}, 0.03);
    }
    cloud_->chance(kCreate, {Fault::Kind::kLate, 60s}, 0.15);
    cloud_->chance(kCreate, {Fault::Kind::kRefused503}, 0.1);
    cloud_->chance(kPause, {Fault::Kind::kRefused503}, 0.2);
    cloud_->chance(kKill, {Fault::Kind::kKept}, 0.2);
    cloud_->chance(kGet, {Fault::Kind::kFalseAbsent}, 0.1);
    insides_.lose_answers(0.1);
  }
  void check_intent() {  // I-FIN, I-INTENT
    const auto truth = life_ ? life_->sandbox() : nullptr;
    ASSERT_TRUE(truth) << "a create for a Sandbox that is not there";
    EXPECT_FALSE(truth->metadata.finalizers.empty()) << "a create before the finalizer";
    EXPECT_TRUE(api::attempt_of(truth->metadata)) << "a create before its intent";
    EXPECT_FALSE(truth->deleting()) << "a create while deleting";
  }
  void check_binding() {  // I-BIND
    const auto sandbox = life_ ? life_->sandbox() : nullptr;
    if (!sandbox || sandbox->status.sandbox_id.empty()) return;
    auto& bound = bound_[sandbox->metadata.uid + "/" + std::to_string(sandbox->status.epoch)];
    if (bound.empty()) bound = sandbox->status.sandbox_id;
    EXPECT_EQ(bound, sandbox->status.sandbox_id) << "the bound id flipped";
  }

  const Weather weather_;
  const std::filesystem::path folder_ = scratch();
  base::FakeClock clock_;
  Fate fate_;
  manifests::PowerLoss power_;
  std::shared_ptr<e2b::FakeCloud> cloud_ =
      std::make_shared<e2b::FakeCloud>(clock_, e2b::FakeCloud::Callbacks::kByHand);
  Insides insides_{*cloud_, fate_, clock_};
  Drift drift_;
  std::unique_ptr<Life> life_;
  std::map<std::string, std::string> bound_;
};

// Create, bind, prepare, pause, resume, delete, dying once at the planned step.
int live_a_life(World& world, Plan plan) {
  world.fate().plan(plan);
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  EXPECT_EQ(world.bound(), id) << "a crash is no reason for another sandbox";
  EXPECT_GE(world.insides().marker(id).run, 2) << "the executor was not told of its run";
  EXPECT_EQ(world.insides().marker(id).incarnation, 1) << "nothing was lost";
  EXPECT_FALSE(world.insides().quiesced(id));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

// Is left alone, paused for that, left alone again, and woken by whoever wants in; dying once at
// the planned step.
constexpr auto kWakes = "{idleSeconds: 20, wakeOnAttach: true}";
int live_an_idle_life(World& world, Plan plan) {
  world.fate().plan(plan);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  EXPECT_GE(world.insides().idle_when_paused(), 20s) << "it was frozen in the middle of something";
  world.pass(40s);
  EXPECT_EQ(world.why("Ready"), api::reason::kIdle) << "nobody wants anything of it";
  EXPECT_EQ(world.cloud().find(id).value_or(e2b::SandboxInfo{}).state, e2b::State::kPaused);
  world.run_until("Ready again", [&] {
    world.attach();
    return world.ready();
  });
  EXPECT_EQ(world.bound(), id);
  EXPECT_GE(world.insides().marker(id).run, 2);
  EXPECT_EQ(world.insides().marker(id).incarnation, 1) << "nothing was lost";
  EXPECT_FALSE(world.insides().quiesced(id));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

// Is left alone, and ended for that; dying once at the planned step. Whatever has lapsed until it
// lives again, a harness is there then, and at work for as long as it may.
constexpr auto kEnds = "{idleSeconds: 20, idleAction: Terminate}";
int live_to_an_idle_end(World& world, Plan plan) {
  world.fate().plan(plan);
  world.after_a_crash = [&world] {
    world.hang(3min);
    for (const auto& sandbox : world.cloud().live()) world.insides().use(sandbox.id);
  };
  world.declare("Running", kEnds);
  world.run_until("an end", [&] {
    const auto sandbox = world.life().sandbox();
    return sandbox && sandbox->status.terminated_time;
  });
  EXPECT_EQ(world.why("Ready"), api::reason::kIdleTimeReached);
  EXPECT_GE(world.insides().idle_when_ended(), 20s) << "it was killed in the middle of something";
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  return world.fate().steps();
}

void expect_nothing_left(World& world) {
  EXPECT_TRUE(world.cloud().live().empty()) << "something is left after deletion";
}

constexpr std::size_t kShards = 8;
constexpr int kStepsMin = 25;  // Of every life; heartbeats come by chance, and may add a few.
class CrashAnywhere : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashAnywhere, ComesOutTheSame) {  // I-ONE, I-RESYNC, I-DELRACE, M4
  World untouched(Weather{});
  const int steps = live_a_life(untouched, {});
  EXPECT_GE(steps, kStepsMin);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_a_life(world, {at, after});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashAnywhere, testing::Range<std::size_t>(0, kShards));

class CrashWhileItIdles : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashWhileItIdles, ComesOutTheSame) {  // I-RESYNC, S7
  World untouched(Weather{});
  const int steps = live_an_idle_life(untouched, {});
  EXPECT_GE(steps, kStepsMin);
  EXPECT_EQ(untouched.drift().counts.at("idle pauses"), 1);
  EXPECT_EQ(untouched.drift().counts.at("wakes"), 1);
  EXPECT_EQ(untouched.cloud().count(e2b::Operation::kConnect), 1u);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_an_idle_life(world, {at, after});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashWhileItIdles, testing::Range<std::size_t>(0, kShards));

class CrashBeforeItsIdleEnd : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashBeforeItsIdleEnd, EndsNothingThatWorks) {  // I-RESYNC, S7
  World untouched(Weather{});
  const int steps = live_to_an_idle_end(untouched, {});
  EXPECT_EQ(untouched.cloud().count(e2b::Operation::kKill), 1u);
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("dying " + std::string(after ? "after" : "before") + " step " +
                   std::to_string(at));
      World world(Weather{});
      live_to_an_idle_end(world, {at, after});
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashBeforeItsIdleEnd, testing::Range<std::size_t>(0, kShards));

class IdlesInBadWeather : public testing::TestWithParam<std::uint64_t> {};

TEST_P(IdlesInBadWeather, ComesOutTheSame) {  // S7
  for (int at = static_cast<int>(GetParam()); at <= 32; at += 8) {
    SCOPED_TRACE("seed " + std::to_string(300 + at) + ", dying at step " + std::to_string(at));
    World world(Weather{.seed = 300 + static_cast<std::uint64_t>(at)});
    live_an_idle_life(world, {at, at % 2 == 0});
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(, IdlesInBadWeather, testing::Range<std::uint64_t>(1, 9));

// A bind need not be synced before what follows it: the E2B sandbox is found by its attempt.
class PowerLossAnywhere : public testing::TestWithParam<std::size_t> {};

TEST_P(PowerLossAnywhere, ComesOutTheSame) {  // I-BIND, I-INTENT, I-ONE
  World untouched(Weather{});
  const int steps = live_a_life(untouched, {});
  for (int at = 1 + static_cast<int>(GetParam()); at <= steps; at += kShards) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE("power loss " + std::to_string(seed) + " after step " + std::to_string(at));
      World world(Weather{});
      live_a_life(world, {at, true, seed});
      EXPECT_TRUE(world.fate().died() || at > kStepsMin);
      EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
      EXPECT_EQ(world.cloud().total_created(), 1u) << "what is on record is found again";
      expect_nothing_left(world);
      if (testing::Test::HasFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, PowerLossAnywhere, testing::Range<std::size_t>(0, kShards));

TEST(CrashTest, ABindThatAPowerLossTakesIsMadeAgain) {  // I-BIND
  World world(Weather{});
  world.declare("Running");
  world.run_until("bound", [&] { return !world.bound().empty(); });
  const std::string id = world.bound();
  EXPECT_TRUE(world.loses_the_binding()) << "it is synced with the next write";
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

class CrashInBadWeather : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CrashInBadWeather, ComesOutTheSame) {  // I-AMBIG, I-DEL, I-HBFAIL
  for (int at = static_cast<int>(GetParam()); at <= 60; at += 8) {
    SCOPED_TRACE("seed " + std::to_string(100 + at) + ", dying at step " + std::to_string(at));
    World world(Weather{.seed = 100 + static_cast<std::uint64_t>(at)});
    live_a_life(world, {at, at % 2 == 0});
    world.pass(10min);
    EXPECT_TRUE(world.cloud().violations().empty()) << "two live sandboxes at once";
    expect_nothing_left(world);
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(, CrashInBadWeather, testing::Range<std::uint64_t>(1, 9));

// A test that cannot fail proves nothing: without the settling time a late create must be seen.
TEST(CrashTest, NoticesASecondSandboxWhenNothingSettles) {
  World world(Weather{.settle_seconds = 5});
  world.cloud().script(e2b::Operation::kCreate, {Fault::Kind::kLate, 30s});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(1min);
  EXPECT_FALSE(world.cloud().violations().empty());
  world.pass(10min);
  EXPECT_EQ(world.cloud().live().size(), 1u) << "the sweep ends the surplus one";
}

// A create was sent, and comes true a minute later.
void begin_with_a_late_create(World& world) {
  world.cloud().script(e2b::Operation::kCreate, {Fault::Kind::kLate, 60s});
  world.declare("Running");
  world.run_until("a create", [&] { return world.cloud().count(e2b::Operation::kCreate) > 0; });
}

TEST(CrashTest, ALateCreateIsWaitedFor) {  // I-AMBIG
  World world(Weather{});
  begin_with_a_late_create(world);
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(5min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, DeletingWhileACreateIsOutLeavesNothing) {  // I-DELRACE
  World world(Weather{});
  begin_with_a_late_create(world);
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  world.pass(5min);
  expect_nothing_left(world);
}

TEST(CrashTest, DeletingWhatNoLookHasShownYetLeavesNothing) {  // I-DEL
  World world(Weather{});
  world.cloud().set_list_lag(60s, 0s);
  world.cloud().chance(e2b::Operation::kGet, {Fault::Kind::kFalseAbsent}, 1);
  world.cloud().script(e2b::Operation::kKill, {Fault::Kind::kKept});
  world.declare("Running");
  world.run_until("bound", [&] { return !world.bound().empty(); });
  world.remove();
  world.pass(60s);
  EXPECT_FALSE(world.gone()) << "nothing has shown it, so its absence proves nothing";
  world.cloud().clear_chances();
  world.run_until("gone", [&] { return world.gone(); });
  expect_nothing_left(world);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kKill), 2u);
}

TEST(CrashTest, ALostStateFolderWaitsForTheCreatesThatItMayHaveSent) {  // I-AMBIG
  World world(Weather{});
  begin_with_a_late_create(world);
  world.lose_state();
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(10min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, WaitsForRoomByOneHoldAndSaysSo) {  // I-429Q
  World world(Weather{});
  world.cloud().set_quota(0);
  const auto why = [&] {
    const auto sandbox = world.life().sandbox();
    const auto* ready = sandbox ? api::find_condition(sandbox->status, "Ready") : nullptr;
    return ready ? ready->reason : "";
  };
  world.declare("Running");
  world.run_until("a refusal", [&] { return why() == api::reason::kProviderQuotaExceeded; });
  const base::Moment refused = world.now();
  const auto generation = world.life().sandbox()->metadata.generation;
  world.declare("Paused");  // Decided anew at once, as after every edit.
  world.run_until("the edit", [&] {
    const auto sandbox = world.life().sandbox();
    return sandbox->metadata.generation > generation &&
           sandbox->status.observed_generation == sandbox->metadata.generation;
  });
  EXPECT_EQ(why(), api::reason::kProviderQuotaExceeded);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 1u);
  world.declare("Running");
  world.run_until("the next try",
                  [&] { return world.cloud().count(e2b::Operation::kCreate) == 2; });
  EXPECT_LE(world.now(), refused + GateOptions{}.quota_hold + 1s);
  world.cloud().set_quota(1);
  const base::Moment freed = world.now();
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_LE(world.now(), freed + GateOptions{}.quota_hold + 5s);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 3u);
}

// A 404 may be a slip of the provider's, and a template may be built while it is waited for.
TEST(CrashTest, ATemplateThatIsNotThereIsAskedForAgain) {
  World world(Weather{});
  const auto stalled = [&] { return world.condition("Stalled"); };
  world.cloud().refuse_template("base");
  world.declare("Running");
  world.run_until("a standstill", stalled);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kCreate), 3u) << "the first 404 is not believed";
  world.pass(14min);
  EXPECT_TRUE(stalled());
  EXPECT_LE(world.cloud().count(e2b::Operation::kCreate), 12u) << "less and less often";
  world.cloud().refuse_template("base", false);
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, AFreshInstallationWaitsForNothing) {
  World world(Weather{});
  const base::Moment begun = world.now();
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_LT(world.now(), begun + 10s);
}

TEST(CrashTest, LeaveSparesItFromEverySweep) {  // I-ORPHANPOLICY, S3
  for (const std::string policy : {"Leave", "Pause"}) {
    World world(Weather{.policy = policy});
    world.declare("Running");
    world.run_until("Ready", [&] { return world.ready(); });
    world.remove();
    world.run_until("gone", [&] { return world.gone(); });
    world.pass(10min);
    EXPECT_EQ(world.cloud().live().size(), 1u) << policy;
    EXPECT_EQ(world.cloud().count(e2b::Operation::kKill), 0u) << policy;
  }
}

TEST(CrashTest, TokensThatAreToldOnceOutliveTheProcess) {
  World world(Weather{.tokens_told_once = true});
  testing::internal::CaptureStderr();
  base::log::configure(base::log::Level::kDebug, base::log::Format::kText);
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const auto seen_again = [&] {
    const int before = world.insides().visits();
    world.restart();
    world.run_until("a look inside", [&] { return world.insides().visits() > before; });
  };
  seen_again();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  seen_again();
  EXPECT_EQ(world.insides().turned_away(), 0);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kConnect), 1u) << "but for the resume";
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_EQ(world.life().sandbox()->status.incarnation, 1);
  base::log::configure(base::log::Level::kInfo, base::log::Format::kText);
  const std::string told = testing::internal::GetCapturedStderr() + world.state_but_ways_in();
  EXPECT_NE(told.find("reconciled"), std::string::npos);
  EXPECT_NE(told.find("\"Ready\""), std::string::npos);
  EXPECT_EQ(told.find("-token-"), std::string::npos) << "a token was told";
  EXPECT_TRUE(world.keeps_a_token());
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
  EXPECT_FALSE(world.keeps_a_token());
}

TEST(CrashTest, TokensThatACrashLostAreAskedForAnew) {
  World world(Weather{.tokens_told_once = true});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.forget_tokens();
  const int before = world.insides().visits();
  world.restart();
  world.run_until("a look inside", [&] { return world.insides().visits() > before; });
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_TRUE(world.keeps_a_token()) << "of the next restart, too";
}

TEST(CrashTest, AReplacementThatIsRefusedTooIsHeldBack) {
  World world(Weather{});
  world.insides().refuse(true);
  world.declare("Running");
  world.run_until("a refusal", [&] { return world.insides().refused() >= 1; });
  const base::Moment begun = world.now();
  world.run_until("a replacement", [&] { return world.insides().refused() >= 2; });
  EXPECT_LT(world.now(), begun + 1s) << "the first refusal is answered at once";
  world.pass(60s);
  EXPECT_GE(world.insides().refused(), 4);
  EXPECT_LE(world.insides().refused(), 10) << "each longer after the one before";
  world.insides().refuse(false);
  world.run_until("Ready", [&] { return world.ready(); });
}

TEST(CrashTest, AnExecutorThatEndedIsPreparedAnew) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.pass(1min);
  world.insides().end_executor(id);
  const auto since =
      api::find_condition(world.life().sandbox()->status, "Prepared")->last_transition;
  const base::Moment ended = world.now();
  world.run_until("another executor", [&] { return !world.insides().executor(id).empty(); });
  EXPECT_LE(world.now(), ended + 7min) << "a round, and the second ask that makes it certain";
  world.run_until("Ready again", [&] { return world.ready(); });
  const auto sandbox = world.life().sandbox();
  EXPECT_GT(api::find_condition(sandbox->status, "Prepared")->last_transition, since);
  EXPECT_NE(world.state_but_ways_in().find(api::reason::kExecutorGone), std::string::npos);
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"executor", 1}}));
  EXPECT_EQ(world.bound(), id);
  EXPECT_EQ(sandbox->status.run, 1);
  EXPECT_EQ(sandbox->status.incarnation, 1) << "what runs beside the executor goes on";
}

TEST(CrashTest, AnExecutorIsAskedAtOnceWhenAPersonAsksForALook) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().end_executor(world.bound());
  const base::Moment ended = world.now();
  world.ask_for_a_look();
  world.run_until("another executor",
                  [&] { return !world.insides().executor(world.bound()).empty(); });
  EXPECT_LE(world.now(), ended + 30s);
}

TEST(CrashTest, AnExecutorThatCannotBeReachedIsNotTakenForDead) {  // Unknown is never absent.
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string executor = world.insides().executor(world.bound());
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.insides().cut_off(true);
  world.pass(14min);
  EXPECT_GE(world.insides().asked(), 2);
  EXPECT_EQ(world.insides().executor(world.bound()), executor);
  EXPECT_TRUE(world.condition("Ready"));
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);
}

TEST(CrashTest, AskingExecutorsThatAreWellWritesNothing) {  // I-NOFLAP
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.pass(10s);
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.pass(14min);
  world.pass(14min);
  EXPECT_GE(world.insides().asked(), 4);
  EXPECT_LE(world.insides().asked(), 8);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);
}

TEST(CrashTest, ARollBackIsNoticedOnce) {  // S12
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready again", [&] { return world.ready(); });
  world.cloud().script(e2b::Operation::kPause, {Fault::Kind::kRolledBack});
  world.declare("Paused");
  world.run_until("Paused again", [&] { return world.condition("Paused"); });
  world.declare("Running");
  world.run_until("Ready once more", [&] { return world.ready(); });
  EXPECT_EQ(world.life().sandbox()->status.incarnation, 2);
  EXPECT_EQ(world.life().sandbox()->status.notices.size(), 1u);
  EXPECT_EQ(world.insides().marker(id).incarnation, 2);
}

TEST(CrashTest, PausedByAnotherHandIsResumed) {  // I-DRIFT
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().pause_by_itself(world.bound());
  world.run_until("run 2",
                  [&] { return world.life().sandbox()->status.run == 2 && world.ready(); });
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"paused", 1}}));
}

// A provider that says yes and does nothing: what is told, and how often it is asked.
void expect_patience(World& world, e2b::Operation operation, const char* message) {
  const auto before = world.cloud().count(operation);
  const base::Moment begun = world.now();
  world.pass(60s);
  EXPECT_GE(world.now(), begun + 60s) << "a hot loop";
  EXPECT_GE(world.cloud().count(operation) - before, 4u);
  EXPECT_LE(world.cloud().count(operation) - before, 8u) << "each longer after the one before";
  const auto sandbox = world.life().sandbox();
  const auto* ready = api::find_condition(sandbox->status, "Ready");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->reason, api::reason::kNoEffect);
  EXPECT_EQ(ready->message, message);
  EXPECT_LE(world.events(), 2) << "nothing is told of each try";
}

TEST(CrashTest, WhatIsUsedDoesNotIdle) {  // I-BUSY
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  for (int i = 0; i < 20; ++i) {
    world.pass(15s);
    world.insides().use(world.bound());
  }
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
}

// The last look found it idle; what comes then keeps it from being paused.
TEST(CrashTest, ARequestInTheLastMomentIsNotFrozen) {  // S7
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().use_after_each_look(true);
  world.pass(3min);
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
  EXPECT_EQ(world.life().sandbox()->status.paused_by, api::PausedBy::kNobody);
  EXPECT_FALSE(world.drift().counts.contains("idle pauses")) << "nor said to be";
  world.insides().use_after_each_look(false);
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

// An extension takes longer than a quiesce lasts, and somebody comes then.
TEST(CrashTest, WhatIsUsedAgainBeforeItsPauseIsNotFrozen) {  // S7
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  int hung = 0;
  world.on_call = [&](e2b::Operation operation) {
    const auto paused_by = world.life().sandbox()->status.paused_by;
    if (operation != e2b::Operation::kExtend || paused_by != api::PausedBy::kIdle) return;
    world.hang(3min);
    if (hung++ == 0) world.insides().use(world.bound());
  };
  world.run_until("a try", [&] { return hung > 0; });
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 0u);
  world.run_until("Ready again", [&] { return world.ready(); });
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_GE(world.insides().idle_when_paused(), 20s);
}

TEST(CrashTest, NobodyAsksInsideWhatIsPausedForIdleness) {
  World world(Weather{});
  world.declare("Running", kWakes);
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  const int visits = world.insides().visits();
  world.forget_events();
  world.restart();
  world.pass(5min);
  EXPECT_EQ(world.insides().visits(), visits);
  EXPECT_EQ(world.cloud().count(e2b::Operation::kConnect), 0u) << "spec.desiredState is Running";
  EXPECT_EQ(world.events(), 0);
}

TEST(CrashTest, ARefusedPauseForIdlenessLetsItGoOn) {  // S7
  World world(Weather{});
  world.cloud().script(e2b::Operation::kPause, {Fault::Kind::kRefused503});
  world.declare("Running", kWakes);
  world.run_until("a try", [&] { return world.cloud().count(e2b::Operation::kPause) == 1; });
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_FALSE(world.insides().quiesced(world.bound()));
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

TEST(CrashTest, WhereNothingCanBePausedWhatIdlesGoesOn) {
  World world(Weather{});
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kFailed500}, 1);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  const base::Moment began = world.now();
  world.run_until("tries", [&] { return world.cloud().count(e2b::Operation::kPause) >= 3; });
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.life().sandbox()->status.paused_by, api::PausedBy::kNobody);
  EXPECT_GE(world.now() - began, 60s) << "no more often than it idles";
}

// Of which nobody knows whether it idles, and who is to do something about that hears it once.
TEST(CrashTest, AnExecutorThatCannotSayWhetherItIdlesIsAskedLessAndLess) {
  World world(Weather{});
  world.insides().be_old(true);
  world.declare("Running", kWakes);
  world.run_until("Ready", [&] { return world.ready(); });
  world.run_until("a try", [&] { return world.insides().looks() == 2; });
  EXPECT_EQ(world.why("Paused"), api::reason::kRunning) << "it may answer yet";
  world.forget_events();
  world.run_until("the news", [&] { return world.why("Paused") == api::reason::kIdlenessUnknown; });
  const std::string version = world.life().sandbox()->metadata.resource_version;
  world.pass(14min);
  EXPECT_TRUE(world.ready());
  EXPECT_GE(world.insides().looks(), 5);
  EXPECT_LE(world.insides().looks(), 10) << "each longer after the one before";
  EXPECT_EQ(world.events(), 1);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);

  world.restart();  // That is no news.
  const int before = world.insides().looks();
  world.run_until("more tries", [&] { return world.insides().looks() >= before + 4; });
  EXPECT_EQ(world.events(), 1);
  EXPECT_EQ(world.life().sandbox()->metadata.resource_version, version);

  world.insides().be_old(false);
  world.ask_for_a_look();  // A person does not wait for the next try.
  const base::Moment asked = world.now();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
  EXPECT_LE(world.now(), asked + 60s);
}

// Else it would be tried every second.
TEST(CrashTest, APauseForIdlenessThatIsRefusedIsTriedLessAndLess) {
  World world(Weather{});
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kFailed500}, 1);
  world.declare("Running", "{idleSeconds: 1, wakeOnAttach: true}");
  world.run_until("the news",
                  [&] { return world.why("Paused") == api::reason::kIdleActionFailed; });
  EXPECT_EQ(world.cloud().count(e2b::Operation::kPause), 1u) << "a refusal is told at once";
  world.pass(14min);
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.why("Paused"), api::reason::kIdleActionFailed);
  EXPECT_GE(world.cloud().count(e2b::Operation::kPause), 4u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kPause), 10u) << "each longer after the one before";
  world.cloud().clear_chances();
  world.run_until("idle", [&] { return world.why("Paused") == api::reason::kIdle; });
}

TEST(CrashTest, WhatIdlesMayEndForGood) {
  World world(Weather{});
  world.declare("Running", kEnds);
  world.run_until("Ready", [&] { return world.ready(); });
  world.run_until("an end", [&] { return world.why("Ready") == api::reason::kIdleTimeReached; });
  world.run_until("its proof",
                  [&] { return world.life().sandbox()->status.terminated_time.has_value(); });
  EXPECT_EQ(world.life().sandbox()->status.ended_by, api::EndedBy::kIdle);
  expect_nothing_left(world);
  world.pass(5min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, ARequestInTheLastMomentIsNotEnded) {
  World world(Weather{});
  world.declare("Running", kEnds);
  world.run_until("Ready", [&] { return world.ready(); });
  world.insides().use_after_each_look(true);
  world.pass(2min);
  EXPECT_TRUE(world.ready());
  EXPECT_EQ(world.life().sandbox()->status.ended_by, api::EndedBy::kNobody);
}

TEST(CrashTest, APauseWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  const std::string id = world.bound();
  world.cloud().chance(e2b::Operation::kPause, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.declare("Paused");
  expect_patience(world, e2b::Operation::kPause,
                  "the provider said that it had paused it, and it is still running");
  EXPECT_EQ(world.life().sandbox()->status.state, "Pausing");
  EXPECT_FALSE(world.insides().quiesced(id)) << "what is inside works on meanwhile";
  world.cloud().clear_chances();
  world.run_until("Paused", [&] { return world.condition("Paused"); });
}

TEST(CrashTest, AResumeWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.declare("Paused");
  world.run_until("Paused", [&] { return world.condition("Paused"); });
  world.cloud().chance(e2b::Operation::kConnect, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.declare("Running");
  expect_patience(world, e2b::Operation::kConnect,
                  "the provider said that it had resumed it, and it is still paused");
  EXPECT_EQ(world.life().sandbox()->status.state, "Resuming");
  world.cloud().clear_chances();
  world.run_until("Ready again", [&] { return world.ready(); });
}

TEST(CrashTest, AKillWithoutEffectIsHeldBack) {
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().chance(e2b::Operation::kKill, {Fault::Kind::kKept}, 1);
  world.forget_events();
  world.remove();
  world.pass(20s);
  EXPECT_GE(world.cloud().count(e2b::Operation::kKill), 4u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kKill), 12u);
  EXPECT_LE(world.events(), 2) << "nothing is told of each try";
  world.cloud().clear_chances();
  world.run_until("gone", [&] { return world.gone(); });
  expect_nothing_left(world);
}

TEST(CrashTest, ACreateOfUncertainOutcomeTellsWhyAndWaitsLongerEachTime) {  // I-AMBIG
  World world(Weather{.settle_seconds = 5});
  world.cloud().chance(e2b::Operation::kCreate, {Fault::Kind::kFailed500}, 1);
  world.declare("Running");
  bool told = false;
  const base::Moment until = world.now() + 3min;
  world.run_until("time", [&] {
    const auto sandbox = world.life().sandbox();
    const auto* ready = sandbox ? api::find_condition(sandbox->status, "Ready") : nullptr;
    told = told || (ready && ready->message.str().find("500: internal error") != std::string::npos);
    return world.now() >= until;
  });
  EXPECT_TRUE(told) << "the provider's words";
  EXPECT_GE(world.cloud().count(e2b::Operation::kCreate), 5u);
  EXPECT_LE(world.cloud().count(e2b::Operation::kCreate), 9u);
  world.cloud().clear_chances();
  world.run_until("Ready", [&] { return world.ready(); });
  EXPECT_EQ(world.cloud().total_created(), 1u);
}

TEST(CrashTest, AKilledOneIsLostAndSaysSo) {  // I-ABSENT
  World world(Weather{});
  world.declare("Running");
  world.run_until("Ready", [&] { return world.ready(); });
  world.cloud().end(world.bound());
  world.run_until("Lost", [&] { return world.life().sandbox()->status.state == "Lost"; });
  world.pass(10min);
  EXPECT_EQ(world.cloud().total_created(), 1u);
  EXPECT_EQ(world.drift().counts, (std::map<std::string, int>{{"lost", 1}}));
  world.remove();
  world.run_until("gone", [&] { return world.gone(); });
}

}  // namespace
}  // namespace controller
