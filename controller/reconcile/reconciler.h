#pragma once

#include <atomic>
#include <memory>

#include "controller/operations/operations.h"
#include "controller/reconcile/decide.h"
#include "controller/reconcile/mandate.h"
#include "controller/reconcile/memories.h"
#include "controller/reconcile/patience.h"
#include "controller/reconcile/providers.h"
#include "controller/reconcile/reach.h"
#include "controller/reconcile/report.h"
#include "controller/reconcile/rounds.h"
#include "controller/reconcile/way_in.h"
#include "libs/api/resource_store.h"
#include "libs/kube/queue.h"

namespace controller {

// The heartbeat engine, as the reconciler needs it.
class Heartbeats {
 public:
  struct Beat {
    std::string uid, id;
    base::Seconds timeout{300}, interval{30};
    std::optional<base::Milliseconds> left = {};  // Of the lease, when it is known.
    std::shared_ptr<Gate> gate;
  };
  virtual ~Heartbeats() = default;
  // Keeps its lease from now on; the same again changes nothing.
  virtual void keep(const Beat& beat) = 0;
  virtual void drop(const std::string& uid) = 0;
  // The same, and returns when none is on its way any more.
  virtual void drain(const std::string& uid) = 0;
};

// What the counts of operators are made from; the default counts nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void acted(const Action&, const Outcome&) {}
  virtual void became_ready(base::Milliseconds) {}
  virtual void drifted(std::string_view) {}
  virtual void paused_for_idleness() {}
  virtual void woke() {}  // From that.
};

struct Parts {
  api::ResourceStore& store;
  Providers& providers;
  Operations& operations;
  Heartbeats& heartbeats;
  Reach& reach;
  Memories& memories;
  const Mandate& mandate;
  const base::Clock& clock;
  Observer& observer;
  std::size_t asking_max = 4;  // Of the workers, for their provider's answer to a short call.
};

// Brings one Sandbox a step closer to what it should be: observe, decide, act, report, publish.
// Safe to call from many threads for different keys.
class Reconciler {
 public:
  explicit Reconciler(Parts parts, RoundsOptions rounds = {});
  kube::Requeue reconcile(const api::Key& key);

 private:
  struct Pass;  // One pass's observation and the session that it acts through.
  Pass observe(const api::Sandbox& wanted);
  Outcome act(const Pass& pass, const Action& action);
  kube::Requeue publish(const Pass& pass, const Action& action, const Outcome& outcome);
  void tell_slow_step(const Pass& pass);
  void recorded(const Pass& pass, const Action& action);
  void tend_lease(const Pass& pass, const Action& action);
  void remember(const Pass& pass, const Action& action, const Outcome& outcome);

  Outcome perform(const Pass& pass, const Look& step);
  Outcome look(const Pass& pass, const Look& step, std::stop_token stop);
  Outcome perform(const Pass& pass, const RecordIntent& step);
  Outcome perform(const Pass& pass, const CountRefusal& step);
  Outcome perform(const Pass& pass, const Create& step);
  Outcome perform(const Pass& pass, const Bind& step);
  Outcome perform(const Pass& pass, const Extend& step);
  Outcome perform(const Pass& pass, const Prepare& step);
  Outcome perform(const Pass& pass, const AskExecutor& step);
  Outcome perform(const Pass& pass, const AskActivity& step);
  Outcome perform(const Pass& pass, const QuiesceIdle& step);
  Outcome perform(const Pass& pass, const RecordIncarnation& step);
  Outcome perform(const Pass& pass, const Resumed& step);
  Outcome perform(const Pass& pass, const RecordRun& step);
  Outcome perform(const Pass& pass, const RecordPausedBy& step);
  Outcome perform(const Pass& pass, const Pause& step);
  Outcome perform(const Pass& pass, const Connect& step);
  Outcome perform(const Pass& pass, const Kill& step);
  Outcome perform(const Pass& pass, const RecordEnding& step);
  Outcome perform(const Pass& pass, const RecordTerminated& step);
  Outcome perform(const Pass& pass, const Release& step);
  Outcome perform(const Pass& pass, const Leave& step);
  Outcome perform(const Pass& pass, const RemoveFinalizer& step);
  Outcome perform(const Pass& pass, const DeleteObject& step);
  Outcome perform(const Pass& pass, const Keep& step);
  Outcome perform(const Pass& pass, const Wait& step);

  Outcome begin(const Pass& pass, std::string name, bool finishes,
                std::function<void(std::stop_token)> work,
                Operation::Line line = Operation::Line::kCommon);
  Outcome begin_in_turn(const Pass& pass, std::string name,
                        std::function<void(std::stop_token)> work,
                        const std::function<void(Memory&, base::Moment)>& put_off);
  Outcome do_or_begin(const Pass& pass, const std::string& name,
                      const std::function<Outcome(std::stop_token)>& work);
  Outcome write_metadata(const Pass& pass, const std::optional<api::Attempt>& attempt,
                         bool finalizer);
  // What the executor said when it was asked to stand still; neither of the two, when nobody knows.
  struct Stillness {
    bool asked = false;
    bool quiesced = false, active = false;
    // Of the call that was to follow, and failed.
    IdleTrouble::Step in_the_way() const {
      return asked && !quiesced ? IdleTrouble::Step::kLastQuiesce : IdleTrouble::Step::kIdleAction;
    }
  };
  Gate::Condition standing_still(const base::Result<Target>& where,
                                 std::optional<base::Seconds> if_idle_for, std::stop_token stop,
                                 Stillness& still);
  base::Result<e2b::KillAnswer> kill(const Pass& pass, const Kill& step, Stillness& still,
                                     std::stop_token stop);
  base::Result<bool> is_nobodys(const api::Metadata& metadata, const Bind& step);
  base::Result<e2b::NewSandbox> new_sandbox(const api::Sandbox& wanted, const Session& session,
                                            const api::Attempt& attempt);
  base::Result<Target> target(const Pass& pass, const std::string& id, Priority priority,
                              std::stop_token stop);
  void hold_back(const api::Sandbox& wanted, std::string_view step, const base::Error& error,
                 std::optional<e2b::CreateFailure::Kind> kind = {});
  void await_effect(const api::Sandbox& wanted, std::string_view step, std::string otherwise);
  void leave_awake(const Pass& pass, IdleTrouble::Step step, const base::Error& why);
  HeldBack held_back(const HeldBack& before, const api::Sandbox& wanted, std::string_view step,
                     const base::Error& why, const Patience& patience) const;

  const Parts parts_;
  std::atomic<std::size_t> asking_ = 0;  // Workers that wait for a provider.
  WayIn way_in_;
  Rounds rounds_;
};

}  // namespace controller
