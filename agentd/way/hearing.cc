#include "agentd/way/hearing.h"

#include <utility>

namespace agentd {

bool Hearing::hears(const kube::ReflectorStats& stats, bool synced, base::Moment now) {
  const std::uint64_t heard = stats.lists + stats.events;
  const bool failed = std::exchange(failures_, stats.failures) != stats.failures;
  if (std::exchange(heard_, heard) != heard) failing_since_.reset();
  if (failed && !failing_since_) failing_since_ = now;
  return synced && (!failing_since_ || now - *failing_since_ < patience_);
}

}  // namespace agentd
