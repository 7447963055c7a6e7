#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"

namespace e2b {

// What the world did to one sandbox, for whoever fakes its inside.
enum class Change { kCreated, kPaused, kResumed, kRolledBack, kKilled };

// The sandboxes of a provider in memory, as they truly are: leases end and late effects land when
// someone next catches up with the clock. Each call of the provider is here as it does its work
// when nothing goes wrong. For one thread at a time.
class FakeSandboxes {
 public:
  explicit FakeSandboxes(const base::Clock& clock)
      : clock_(clock), start_(clock.now()), wall_start_(clock.wall()), moment_(start_) {}

  void set_list_lag(base::Milliseconds appear, base::Milliseconds disappear);
  void set_quota(std::size_t running_max) { quota_ = running_max; }
  void set_longest_run(base::Milliseconds longest) { longest_run_ = longest; }
  void refuse_template(const std::string& id, bool refused = true) {
    if (refused)
      refused_templates_.insert(id);
    else
      refused_templates_.erase(id);
  }
  void hide_tokens(bool hidden) { tokens_hidden_ = hidden; }

  // Lets everything happen, in order, that is due by now.
  void catch_up();
  void add_late(base::Milliseconds late, std::function<void()> effect);
  base::Moment moment() const { return moment_; }  // How far the world has come.
  base::WallTime provider_time() const { return wall_at(clock_.now()); }

  base::Result<Handle, CreateFailure> create(const NewSandbox& wanted);
  Told<std::optional<SandboxInfo>> get(const std::string& id);
  base::Result<std::optional<Handle>> handle(const std::string& id);
  Told<std::vector<SandboxInfo>> list(const Filter& filter) const;
  KillAnswer kill(const std::string& id);
  base::Result<PauseAnswer> pause(const std::string& id);
  base::Result<Connected> connect(const std::string& id, base::Seconds timeout);
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout);
  std::string plant(const NewSandbox& wanted);  // Without asking whether there is room.
  // A running one's run is lost: its older snapshot is left, or nothing.
  void lose_run(const std::string& id);

  std::vector<SandboxInfo> live() const;
  std::optional<Handle> truth_of(const std::string& id);
  std::optional<NewSandbox> request_of(const std::string& id) const;
  std::size_t total() const { return sandboxes_.size(); }
  std::string newest() const { return sandboxes_.rbegin()->first; }  // There must be one.

  // Two live sandboxes with one value of a key at the same time.
  struct Overlap {
    std::string value;
    std::string first, second;
    base::Moment from;
    std::optional<base::Moment> until = {};  // Nothing: it lasts.
  };
  std::vector<Overlap> overlaps(base::Milliseconds tolerated, const std::string& key) const;

  struct News {
    std::string id;
    Change change;
  };
  std::vector<News> take_news() { return std::exchange(news_, {}); }

 private:
  struct Sandbox {
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

  void expire_due();
  Sandbox* find_alive(const std::string& id);
  SandboxInfo look(const Sandbox& sandbox) const;
  Handle handle_of(const Sandbox& sandbox) const;
  base::WallTime wall_at(base::Moment moment) const { return wall_start_ + (moment - start_); }
  bool is_bad_timeout(base::Seconds timeout) const;
  bool is_full() const;
  std::optional<CreateFailure> objection_to(const NewSandbox& wanted) const;
  Sandbox& add(const NewSandbox& wanted);
  void set_lease(Sandbox& sandbox, base::Seconds timeout);
  void become(const Sandbox& sandbox, Change change) { news_.push_back({sandbox.info.id, change}); }
  void save(Sandbox& sandbox);
  void roll_back(Sandbox& sandbox);
  void drop(Sandbox& sandbox);

  const base::Clock& clock_;
  const base::Moment start_;
  const base::WallTime wall_start_;
  base::Moment moment_;
  base::Moment next_expiry_ = base::Moment::max();  // No lease ends before.
  std::map<std::string, Sandbox> sandboxes_;        // Dead ones too.
  std::vector<Late> late_;
  base::Milliseconds appear_{0}, disappear_{0};
  std::optional<std::size_t> quota_;
  std::optional<base::Milliseconds> longest_run_;
  std::set<std::string> refused_templates_;
  bool tokens_hidden_ = false;
  std::vector<News> news_;
};

}  // namespace e2b
