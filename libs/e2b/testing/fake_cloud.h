#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"
#include "libs/e2b/testing/fake_faults.h"
#include "libs/e2b/testing/fake_sandboxes.h"

namespace e2b {

// An E2B in memory whose time is a clock that its test moves: leases end, late effects land and
// list entries show up when someone next looks. Safe to use from many threads.
class FakeCloud final : public Cloud {
 public:
  // kOwnThread: callbacks of start_extend run on a thread of the cloud. kByHand: only within
  // run_callbacks(), for tests in one thread.
  enum class Callbacks { kOwnThread, kByHand };

  explicit FakeCloud(const base::Clock& clock, Callbacks callbacks = Callbacks::kOwnThread);
  ~FakeCloud() override;

  // --- What a test arranges.
  void script(Operation operation, Fault fault);  // For the next call of that kind; in order.
  void chance(Operation operation, Fault fault, double probability);
  void clear_chances();
  void seed(std::uint64_t seed);
  void set_list_lag(base::Milliseconds appear, base::Milliseconds disappear);
  void set_quota(std::size_t running_max);
  void set_longest_run(base::Milliseconds longest);
  void refuse_template(const std::string& template_id, bool refused = true);
  void hide_tokens(bool hidden);  // Handles by GET carry none.
  // Run without the lock, so they may call back, change resources or throw. A create's `before` has
  // no id yet; its `after` has the id of what came of it, if anything did.
  void before(std::function<void(Operation, const std::string& id)> hook);
  void after(std::function<void(Operation, const std::string& id)> hook);
  void on_change(std::function<void(const std::string& id, Change)> hook);
  // A sandbox nobody of ours asked for.
  std::string plant(const NewSandbox& wanted);
  void end(const std::string& id);  // It vanishes, as if its machine had died.
  void pause_by_itself(const std::string& id);
  std::size_t run_callbacks();  // How many ran.

  // --- What a test looks at.
  struct Call {
    Operation operation;
    std::string id;  // Empty for list, and for a create of which nothing came.
    base::Moment at;
    std::optional<base::ErrorCode> failed = {};
  };
  using Overlap = FakeSandboxes::Overlap;
  std::vector<Call> calls() const;
  std::size_t count(Operation operation) const;
  std::vector<SandboxInfo> live();  // Running and paused, as they truly are.
  std::vector<std::string> live_of(const std::string& uid,
                                   const std::string& key = "sandfleet.uid");
  std::optional<SandboxInfo> find(const std::string& id);
  std::optional<Handle> truth_of(const std::string& id);  // Its tokens as they are now.
  std::optional<NewSandbox> request_of(const std::string& id) const;
  std::size_t total_created() const;
  std::size_t refreshed() const;  // By calls of start_refresh.
  // Overlaps that lasted longer than `tolerated`.
  std::vector<Overlap> violations(base::Milliseconds tolerated = base::Milliseconds(0),
                                  const std::string& key = "sandfleet.uid");
  base::WallTime provider_time() const;  // Its own clock; the test's wall may jump, this does not.

  base::Result<Handle, CreateFailure> create(const NewSandbox& wanted,
                                             std::stop_token stop) override;
  base::Result<Told<std::optional<SandboxInfo>>> get(const std::string& id,
                                                     std::stop_token stop) override;
  base::Result<std::optional<Handle>> handle(const std::string& id, std::stop_token stop) override;
  base::Result<Told<std::vector<SandboxInfo>>> list(const Filter& filter,
                                                    std::stop_token stop) override;
  base::Result<KillAnswer> kill(const std::string& id, std::stop_token stop) override;
  base::Result<PauseAnswer> pause(const std::string& id, std::stop_token stop) override;
  base::Result<Connected> connect(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override;
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override;
  void start_extend(const std::string& id, base::Seconds timeout,
                    std::function<void(base::Result<base::Done>)> done) override;
  void start_refresh(const std::string& id, base::Seconds timeout,
                     std::function<void(base::Result<base::Done>)> done) override;

 private:
  template <typename Outcome>
  struct Verb {
    Operation operation;
    std::string id;
    std::function<Outcome()> effect;
    std::function<std::optional<Outcome>(const Fault&)> special;  // Its own way to suffer a fault.
  };
  template <typename Outcome>
  Outcome call(const Verb<Outcome>& verb);
  template <typename Outcome>
  Outcome perform(const Verb<Outcome>& verb);  // Under the lock.
  // What `look` makes of the present, under the lock; whatever happened meanwhile is told.
  template <typename Look>
  auto at_present(Look look);

  void tell_news();  // Without the lock.
  void run_callbacks_until(std::stop_token stop);

  mutable std::mutex mutex_;
  FakeSandboxes sandboxes_;
  FakeFaults faults_;
  std::vector<Call> calls_;
  std::size_t refreshed_ = 0;
  std::function<void(Operation, const std::string&)> before_, after_;
  std::function<void(const std::string&, Change)> on_change_;
  std::deque<std::function<void()>> callbacks_;
  std::condition_variable_any callbacks_waiting_;
  std::jthread runner_;  // Last: it ends before what it uses.
};

}  // namespace e2b
