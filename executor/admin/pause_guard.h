#pragma once

#include <optional>

#include "libs/base/awake_time.h"
#include "libs/base/clock.h"

namespace executor {

// Whether the executor stands still for a pause. It lapses by itself after its deadline in awake
// time, so that a pause that never came does not leave it closed for ever.
class PauseGuard {
 public:
  void quiesce(base::Seconds deadline, base::Moment now);
  void thaw() { awake_.reset(); }
  bool quiesced() const { return awake_.has_value(); }
  bool look(base::Moment now);  // True when it has just lapsed.

 private:
  std::optional<base::AwakeTime> awake_;
  base::Milliseconds deadline_{};
};

}  // namespace executor
