#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libs/base/awake_time.h"
#include "libs/base/clock.h"

namespace executor {

// The CPU time that programs of the sandbox have used so far. It may shrink, when what had used it
// is gone.
using CpuMeter = std::function<base::Milliseconds()>;

// For how long nothing has been active in this sandbox: no request that works was under way, no
// bytes of one have moved, and no program has used CPU time worth the name. That a session is open,
// that a program waits for input, or that somebody waits for its end, is nothing. Counted in awake
// time: what was frozen has not idled. One loop's state.
class Activity {
  struct Requests {
    bool moved = false;
    int at_work = 0;
  };

 public:
  // From one look at the meters to the next; and what programs may use in between all the same,
  // together, while they count as silent: so much, and a part of the time.
  static constexpr base::Milliseconds kCpuLookEvery{5'000};
  static constexpr base::Milliseconds kCpuSpared{20};
  static constexpr int kCpuSparedPercent = 2;

  explicit Activity(base::Moment now, std::vector<CpuMeter> meters = {})
      : awake_(now), meters_(std::move(meters)) {}
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Something was asked, answered, or carried.
  void moved() { requests_->moved = true; }
  // A request is at work for as long as this lives. It may outlive the Activity: what a loop has
  // not come to when its program ends is dropped with the loop.
  class Work {
   public:
    explicit Work(Activity& activity) : requests_(activity.requests_) { ++requests_->at_work; }
    ~Work() {
      --requests_->at_work;
      requests_->moved = true;
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    const std::shared_ptr<Requests> requests_;
  };

  // Now and then. Meters are looked at once somebody has asked.
  void look(base::Moment now);
  // For how long nothing has been active. The first who asks finds it active: of the CPU time of
  // before nothing is known.
  base::Milliseconds idle_for(base::Moment now);

 private:
  void note(base::Moment now);  // What is known without the meters.
  void look_at_meters();
  base::Milliseconds spared() const;

  base::AwakeTime awake_;
  base::Milliseconds now_{}, active_at_{};  // In awake time.
  const std::shared_ptr<Requests> requests_ = std::make_shared<Requests>();
  const std::vector<CpuMeter> meters_;
  std::vector<base::Milliseconds> used_;              // What each meter showed, at its last look,
  std::optional<base::Milliseconds> looked_at_ = {};  // which was then.
};

}  // namespace executor
