#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>

#include "controller/reconcile/reach.h"
#include "controller/testing/fate.h"
#include "libs/base/clock.h"
#include "libs/base/crypto.h"
#include "libs/e2b/testing/fake_cloud.h"

namespace controller::mortal {

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
    if (hangs_at_quiesce && hangs_at_quiesce())
      return base::Error{base::ErrorCode::kUnavailable, "no answer to a quiesce"};
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
  std::function<bool()> hangs_at_quiesce = {};
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

}  // namespace controller::mortal
