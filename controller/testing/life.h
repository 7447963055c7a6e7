#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "controller/controller.h"
#include "controller/heartbeat/engine.h"
#include "controller/poll/connections.h"
#include "controller/reconcile/reconciler.h"
#include "controller/sweep/sweeper.h"
#include "controller/testing/insides.h"
#include "controller/testing/mortal_store.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/testing/power_loss.h"

namespace controller::mortal {

using namespace std::chrono_literals;  // NOLINT: the words of the lives below.

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

}  // namespace controller::mortal
