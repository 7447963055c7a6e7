#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"

namespace e2b {

enum class Operation { kCreate, kGet, kHandle, kList, kKill, kPause, kConnect, kExtend };
std::string_view to_word(Operation operation);

// One way in which a call goes wrong.
struct Fault {
  enum class Kind {
    kNotSent,      // No byte went out; nothing happens.
    kRefused503,   // A create: for want of capacity, definite. A pause: refused, still running.
    kFailed500,    // Nothing happens. A create cannot know that.
    kRateLimited,  // 429 with a Retry-After of one second.
    kReplyLost,    // It happens; the caller hears nothing.
    kLate,         // The caller hears nothing; it happens `late` afterwards.
    kFalseAbsent,  // Get, handle, kill, pause, connect, extend: 404 although it is there. List:
                   // empty.
    kRolledBack,   // Pause: 500, the run is lost; the older snapshot is left, or nothing.
    kKept,         // Kill: 204, and it lives on.
    kWrongFilter,  // List: the provider ignores the filter.
  };
  Kind kind;
  base::Milliseconds late{0};
};

// What the world did to one sandbox, for whoever fakes its inside.
enum class Change { kCreated, kPaused, kResumed, kRolledBack, kKilled };

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
  void refuse_template(const std::string& template_id);
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
  // Two live sandboxes with one value of the key at the same time.
  struct Overlap {
    std::string value;
    std::string first, second;
    base::Moment from;
    std::optional<base::Moment> until = {};  // Nothing: it lasts.
  };
  std::vector<Call> calls() const;
  std::size_t count(Operation operation) const;
  std::vector<SandboxInfo> live();  // Running and paused, as they truly are.
  std::vector<std::string> live_of(const std::string& uid,
                                   const std::string& key = "sandfleet.uid");
  std::optional<SandboxInfo> find(const std::string& id);
  std::optional<Handle> truth_of(const std::string& id);  // Its tokens as they are now.
  std::optional<NewSandbox> request_of(const std::string& id) const;
  std::size_t total_created() const;
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

 private:
  struct Box {
    SandboxInfo info;  // Its times are filled in when someone looks.
    NewSandbox wanted;
    bool alive = true;
    base::Moment since{};                    // When it came to be.
    std::optional<base::Moment> gone = {};   // When it ceased to be.
    base::Moment run_start{}, lease_end{};   // Of the present or last run.
    std::optional<base::Moment> saved = {};  // The newest snapshot.
    int run = 1;
  };
  struct Late {
    base::Moment at;
    std::function<void()> effect;
  };
  struct Chance {
    Operation operation;
    Fault fault;
    double probability;
  };
  struct News {
    std::string id;
    Change change;
  };

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
  Outcome perform(const Verb<Outcome>& verb);

  // All below run under the lock.
  std::optional<Fault> draw(Operation operation);
  void catch_up();
  void expire(Box& box);
  Box* find_alive(const std::string& id);
  SandboxInfo look(const Box& box) const;
  base::WallTime wall_at(base::Moment moment) const;
  void set_lease(Box& box, base::Seconds timeout);
  void become(Box& box, Change change);
  void pause_box(Box& box);
  void roll_back(Box& box);
  void drop(Box& box, Change change);
  Handle handle_of(const Box& box) const;
  std::size_t running_count() const;
  std::optional<CreateFailure> objection_to(const NewSandbox& wanted) const;
  Box& add(const NewSandbox& wanted);
  std::vector<SandboxInfo> listed(const Filter& filter) const;
  base::Result<KillAnswer> do_kill(const std::string& id);
  base::Result<PauseAnswer> do_pause(const std::string& id);
  base::Result<Connected> do_connect(const std::string& id, base::Seconds timeout);
  base::Result<base::Done> do_extend(const std::string& id, base::Seconds timeout);

  void tell_news();  // Without the lock.
  void run_callbacks_until(std::stop_token stop);

  const base::Clock& clock_;
  const base::Moment start_;
  const base::WallTime wall_start_;
  mutable std::mutex mutex_;
  base::Moment moment_;                             // How far the world has come.
  base::Moment next_expiry_ = base::Moment::max();  // No lease ends before.
  std::map<std::string, Box> boxes_;                // Dead ones too.
  std::vector<Late> late_;
  std::map<Operation, std::deque<Fault>> scripted_;
  std::vector<Chance> chances_;
  std::mt19937_64 random_{1};
  base::Milliseconds appear_{0}, disappear_{0};
  std::optional<std::size_t> quota_;
  std::optional<base::Milliseconds> longest_run_;
  std::set<std::string> refused_templates_;
  bool tokens_hidden_ = false;
  std::vector<Call> calls_;
  std::vector<News> news_;
  std::function<void(Operation, const std::string&)> before_, after_;
  std::function<void(const std::string&, Change)> on_change_;
  std::deque<std::function<void()>> callbacks_;
  std::condition_variable_any callbacks_waiting_;
  std::jthread runner_;  // Last: it ends before what it uses.
};

}  // namespace e2b
