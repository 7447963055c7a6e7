#pragma once

#include <cstdint>

namespace controller::mortal {

struct Crash {};

// Where the process dies: before or after its n-th step that others can see.
struct Plan {
  int at = -1;
  bool after = false;
  std::uint64_t power_loss = 0;  // Not 0: its machine dies with it, and this says how.
};

// Counts the steps, and dies at the planned one.
class Fate {
 public:
  void plan(Plan plan) { plan_ = plan, step_ = 0; }
  void before() {
    if (++step_ == plan_.at && !plan_.after) die();
  }
  void after() {
    if (step_ == plan_.at && plan_.after) die();
  }
  int steps() const { return step_; }
  bool died() const { return died_; }
  std::uint64_t power_loss() const { return plan_.power_loss; }
  int events = 0;  // Told of Sandboxes, in all lives.

 private:
  void die() {
    plan_.at = -1;
    died_ = true;
    throw Crash{};
  }
  Plan plan_;
  int step_ = 0;
  bool died_ = false;
};

}  // namespace controller::mortal
