#pragma once

#include <optional>

#include "libs/base/clock.h"
#include "libs/kube/reflector.h"

namespace agentd {

// Whether a mirror is still told what happens. A quiet server says so about once a minute; where a
// watch broke off and nothing has come since, for longer than that, nobody knows.
class Hearing {
 public:
  explicit Hearing(base::Milliseconds patience = base::Seconds(90)) : patience_(patience) {}

  // What the mirror's thread has counted so far, and whether it ever was complete.
  bool hears(const kube::ReflectorStats& stats, bool synced, base::Moment now);

 private:
  const base::Milliseconds patience_;
  std::uint64_t heard_ = 0, failures_ = 0;
  std::optional<base::Moment> failing_since_ = {};
};

}  // namespace agentd
