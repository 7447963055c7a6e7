#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/loop.h"
#include "libs/base/clock.h"
#include "local_e2b/control/answer.h"
#include "local_e2b/control/box_host.h"
#include "local_e2b/control/connections.h"
#include "local_e2b/control/leases.h"
#include "local_e2b/control/requests.h"
#include "local_e2b/state/records.h"
#include "local_e2b/state/sandbox.h"

namespace local_e2b {

struct FleetLimits {
  std::size_t sandboxes_max = 100;        // Starting, running and pausing ones together.
  std::int64_t run_seconds_max = 86'400;  // From start or resume, without a pause.
  base::Milliseconds retry{10'000};       // Before what failed and nobody asks for is tried again.
};

// All sandboxes and what is done to them. At most one change at a time happens to one sandbox: who
// asks for the same joins it, who asks for another waits or is refused. What is about to happen is
// written down before it does, and what happened after, so that a server that starts again goes on.
class Fleet {
 public:
  Fleet(aio::Executor executor, BoxHost& host, const Records& records, Connections& connections,
        const base::Clock& clock, FleetLimits limits);

  // Before anything else: takes over the sandboxes that the records name, finishes or undoes what
  // was under way, and destroys the boxes that no record names.
  aio::Task<> adopt();
  // Ends or pauses sandboxes whose time is over, for ever.
  aio::Task<> keep_leases();
  // Looks every second at the boxes: cuts logs that have grown, and removes the sandboxes of those
  // that died by themselves.
  aio::Task<> tend_boxes();
  void expire_due();

  aio::Task<Outcome<Sandbox>> create(std::string team, CreateRequest request);
  Outcome<Sandbox> get(const std::string& team, const std::string& id) const;
  std::vector<const Sandbox*> of_team(const std::string& team) const;
  aio::Task<Outcome<base::Done>> kill(std::string team, std::string id);
  aio::Task<Outcome<base::Done>> pause(std::string team, std::string id);
  struct Connected {
    Sandbox sandbox;
    bool resumed = false;
  };
  aio::Task<Outcome<Connected>> connect(std::string team, std::string id, ConnectRequest request);
  aio::Task<Outcome<Sandbox>> resume(std::string team, std::string id, ConnectRequest request);
  Outcome<base::Done> set_timeout(const std::string& team, const std::string& id,
                                  std::int64_t seconds);
  Outcome<base::Done> refresh(const std::string& team, const std::string& id, std::int64_t seconds);

  // For the router, which asks for no team: the sandbox as it is, in any phase.
  const Sandbox* find(const std::string& id) const;
  // Wakes a paused sandbox on traffic.
  aio::Task<Outcome<base::Done>> wake(std::string id);

  std::vector<Sandbox> all() const;
  // At the end of the server, when nobody asks any more: destroys every box, also of those whose
  // last change was cut off.
  aio::Task<> kill_all();

 private:
  struct Operation {
    std::optional<Outcome<base::Done>> outcome;
  };
  struct Due {
    Phase phase;
    base::WallTime end_at;
  };
  struct Entry {
    Entry(Sandbox sandbox, aio::Executor executor)
        : sandbox(std::move(sandbox)), changed(std::move(executor)) {}
    Sandbox sandbox;  // As it is.
    // What it is to be, and stays on record, while the kernel refuses that; until some change to it
    // succeeds.
    std::optional<Due> due;
    std::shared_ptr<Operation> operation;
    aio::Condition changed;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  // How many deeds on boxes are under way.
  struct Work {
    explicit Work(aio::Executor executor) : done(std::move(executor)) {}
    std::size_t count = 0;
    aio::Condition done;
  };
  // Held while something is done to a box, also when who asked for it is cancelled meanwhile. A
  // deed that is dropped with the loop may be dropped after the fleet.
  class Busy {
   public:
    explicit Busy(std::shared_ptr<Work> work) : work_(std::move(work)) { ++work_->count; }
    ~Busy() {
      if (--work_->count == 0) work_->done.notify_all();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    const std::shared_ptr<Work> work_;
  };
  using Deed = aio::Task<Outcome<base::Done>>;

  EntryPtr find_own(const std::string& team, const std::string& id) const;
  std::size_t occupied() const;
  Outcome<base::Done> check_room() const;
  Outcome<base::Done> begin(Entry& entry, Phase phase);
  Outcome<base::Done> finish(Entry& entry, Phase phase, Outcome<base::Done> outcome);
  base::Result<base::Done> write_down(const Entry& entry) const;
  void save(const Entry& entry);
  void forget(const EntryPtr& entry);
  Deed join(EntryPtr entry);
  Deed build(EntryPtr entry, std::map<std::string, std::string> env);
  Deed undo_create(EntryPtr entry, std::string why);
  Deed do_pause(EntryPtr entry);
  Deed do_kill(EntryPtr entry);
  Deed do_resume(EntryPtr entry, std::int64_t timeout_seconds);
  Deed resume_failed(EntryPtr entry, base::Error why);
  aio::Task<bool> adopt_one(Sandbox sandbox);
  void show_as_it_is(const EntryPtr& entry, const base::Error& why);
  aio::Task<> mend(EntryPtr entry);
  aio::Task<> give_its_due(EntryPtr entry);
  aio::Task<> expire(EntryPtr entry);
  aio::Task<> retry_kill(EntryPtr entry);
  aio::Task<> destroy_at_last(BoxRecord box);
  aio::Task<> end(EntryPtr entry);
  void start_run(Sandbox& sandbox, std::int64_t timeout_seconds);
  Outcome<base::Done> lease(Entry& entry, std::int64_t seconds, bool may_shorten);

  const aio::Executor executor_;
  BoxHost& host_;
  const Records& records_;
  Connections& connections_;
  const base::Clock& clock_;
  const FleetLimits limits_;
  std::map<std::string, EntryPtr> entries_;
  Leases leases_;
  aio::Condition leases_changed_;
  const std::shared_ptr<Work> work_;
  aio::TaskGroup tasks_;
};

}  // namespace local_e2b
