#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "libs/kube/election.h"
#include "libs/kube/reflector.h"

namespace kube {

inline constexpr int kReleaseTriesMax = 3;

// One contender for one lease. Safe to ask from many threads; turned by one.
class Elector {
 public:
  // Says whether the way is clear beyond the lease itself (OtherCounts::are_gone). Asked before we
  // claim the lease, and again once we have it and before we may act: of two who do this, one at
  // least sees the other.
  using Clear = std::function<Answer<bool>(std::stop_token)>;

  // Both outlive it. `chance` spreads contenders who would move together.
  Elector(LeaseStore& store, const base::Clock& clock, ElectionSettings settings,
          Clear clear = always_clear, std::function<double()> chance = random_chance);
  ~Elector();
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  // Whether we hold the lease so surely that nobody else can act on it now. To be asked right
  // before every mutating call: a process that was stopped for long finds out here.
  bool may_act() const;
  // How many times we came to hold it, renewals apart, and since when we do for the last time.
  // Between two of them another may have held it. True of any moment in which may_act() was asked
  // first.
  int tenures() const { return tenures_; }
  // How many times we could act anew after a moment in which we could not.
  int spells() const { return spells_; }
  base::Moment since() const { return since_; }
  // How many times a lease that we last saw as ours had to be looked at before it could be renewed,
  // for the renewal before had failed.
  int slow_paths() const { return slow_paths_; }
  // Who held it when we last saw it: us, another, or nobody (empty).
  std::string holder() const;

  // Looks, claims or renews as is due; how long to wait before the next turn.
  base::Milliseconds turn(std::stop_token stop);
  // Gives the lease back, so that the next need not wait; from here on we may not act.
  void release(std::stop_token stop);

  // Turns by itself until destroyed, then releases. `turned` is called after each turn and after
  // the release, from the elector's thread. Once.
  void start(std::function<void()> turned);

 private:
  static Answer<bool> always_clear(std::stop_token) { return true; }

  base::Milliseconds put(const LeaseRecord& record, std::stop_token stop);
  bool is_clear(const std::stop_token& stop);
  void run(const std::stop_token& stop);
  base::Milliseconds jittered(base::Milliseconds time) const;
  void set(Standing standing);

  LeaseStore& store_;
  const base::Clock& clock_;
  const ElectionSettings settings_;
  const Clear clear_;
  const std::function<double()> chance_;
  std::function<void()> turned_;

  // Of the thread that turns.
  Standing standing_;
  std::optional<Reason> unread_, unwritten_, unclear_;  // Why, the last time; and that was told.
  std::int64_t transitions_ = -1;  // Of the lease, when we last came to hold it.

  // Set in this order whenever we come to hold it.
  std::atomic<base::Moment> since_{base::Moment{}};
  std::atomic<int> tenures_ = 0, spells_ = 0;
  std::atomic<int> slow_paths_ = 0;
  std::atomic<base::Moment> acts_until_{base::Moment{}};
  mutable std::mutex mutex_;
  std::string holder_;
  std::jthread thread_;
};

}  // namespace kube
