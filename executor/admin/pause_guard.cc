#include "executor/admin/pause_guard.h"

#include <algorithm>

namespace executor {

base::Milliseconds AwakeTime::look(base::Moment now) {
  awake_ += std::clamp(now - last_, base::Milliseconds(0), kGapMax);
  last_ = now;
  return awake_;
}

void PauseGuard::quiesce(base::Seconds deadline, base::Moment now) {
  awake_.emplace(now);
  deadline_ = deadline;
}

bool PauseGuard::look(base::Moment now) {
  if (!awake_ || awake_->look(now) < deadline_) return false;
  thaw();
  return true;
}

}  // namespace executor
