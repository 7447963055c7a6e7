#include "executor/admin/pause_guard.h"

namespace executor {

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
