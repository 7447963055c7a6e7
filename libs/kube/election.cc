#include "libs/kube/election.h"

#include <algorithm>

namespace kube {

using base::Milliseconds;
using base::Moment;

bool holds(const Standing& standing, const ElectionSettings& settings) {
  return standing.seen && standing.seen->holder == settings.identity;
}

ElectionMove decide(const Standing& standing, const ElectionSettings& settings, Moment now,
                    base::WallTime wall) {
  if (!standing.known) return Look{};
  LeaseRecord wanted = standing.seen.value_or(LeaseRecord{});
  wanted.duration = settings.lease;
  wanted.renewed = wall;
  if (holds(standing, settings)) return Put{wanted};

  const bool others = standing.seen && !standing.seen->holder.empty();
  const Milliseconds left =
      others ? standing.seen_at + standing.seen->duration - now : Milliseconds(0);
  if (left > Milliseconds(0)) return Rest{std::min(left, settings.retry)};
  wanted.holder = settings.identity;
  wanted.acquired = wall;
  if (standing.seen) ++wanted.transitions;
  return Put{wanted};
}

Standing after_look(Standing standing, const std::optional<LeaseRecord>& lease, Moment now) {
  if (standing.seen != lease) standing.seen_at = now;
  standing.seen = lease;
  standing.known = true;
  return standing;
}

Standing after_put(Standing standing, const ElectionSettings& settings, const LeaseRecord& written,
                   Moment sent_at, Moment now) {
  standing = after_look(std::move(standing), written, now);
  standing.acts_until = sent_at + settings.renew_deadline;
  return standing;
}

Standing after_failure(Standing standing) {
  standing.known = false;
  return standing;
}

LeaseRecord released(const LeaseRecord& held, base::WallTime wall) {
  LeaseRecord record = held;
  record.holder.clear();
  record.duration = base::Seconds(1);
  record.renewed = wall;
  return record;
}

}  // namespace kube
