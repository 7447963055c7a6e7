#include "executor/activity/activity.h"

namespace executor {

void Activity::look(base::Moment now) {
  note(now);
  if (looked_at_ && now_ - *looked_at_ >= kCpuLookEvery) look_at_meters();
}

base::Milliseconds Activity::idle_for(base::Moment now) {
  note(now);
  look_at_meters();
  return now_ - active_at_;
}

void Activity::note(base::Moment now) {
  now_ = awake_.look(now);
  if (requests_->moved || requests_->at_work > 0) active_at_ = now_;
  requests_->moved = false;
}

base::Milliseconds Activity::spared() const {
  return kCpuSpared + (now_ - *looked_at_) * kCpuSparedPercent / 100;
}

// When in between it was used is not known: it counts as just now.
void Activity::look_at_meters() {
  if (!looked_at_) active_at_ = now_;
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    const base::Milliseconds used = meters_[i]();
    if (i == used_.size()) used_.push_back(used);
    if (looked_at_ && used - used_[i] > spared()) active_at_ = now_;
    used_[i] = used;
  }
  looked_at_ = now_;
}

}  // namespace executor
