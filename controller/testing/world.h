#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/attach/admission.h"
#include "controller/testing/life.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/time.h"
#include "libs/manifests/requests.h"

// A controller in simulated time and one thread: the real store on a scratch folder, a provider in
// memory whose answers are lost or late, and the inside of its sandboxes. It can be killed between
// any two of its steps.
namespace controller::mortal {

using e2b::Fault;

// Lifecycles: one that pauses what idles, and one that ends it.
inline constexpr auto kWakes = "{idleSeconds: 20, wakeOnAttach: true}";
inline constexpr auto kEnds = "{idleSeconds: 20, idleAction: Terminate}";

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

inline void expect_nothing_left(World& world) {
  EXPECT_TRUE(world.cloud().live().empty()) << "something is left after deletion";
}

}  // namespace controller::mortal
