#pragma once

#include <string>
#include <variant>

#include "libs/kube/lease.h"

// Who holds a lease, and for how long that may be acted upon: pure. Wall clocks are only written
// down for people; what decides is the monotonic clock of each contender. Who holds the lease acts
// for less time than all others wait, counted from before its request was sent to after they saw
// it.
namespace kube {

struct ElectionSettings {
  std::string identity;                       // Of this process alone: no other start has the same.
  base::Seconds lease{15};                    // How long the others wait.
  base::Milliseconds renew_deadline{10'000};  // How long the holder acts after it last renewed.
  base::Milliseconds retry{2'000};
};

// What a contender remembers.
struct Standing {
  std::optional<LeaseRecord> seen = {};  // Nothing: there is no lease, or we have not looked.
  base::Moment seen_at{};                // When it first looked like that.
  bool known = false;                    // We have looked, and nothing has said otherwise since.
  base::Moment acts_until{};             // As the holder.
};

struct Look {  // Ask for the lease as it is.
  bool operator==(const Look&) const = default;
};
struct Put {  // Claim or renew it with this.
  LeaseRecord record;
  bool operator==(const Put&) const = default;
};
struct Rest {  // It is somebody else's.
  base::Milliseconds time;
  bool operator==(const Rest&) const = default;
};
using ElectionMove = std::variant<Look, Put, Rest>;

bool holds(const Standing& standing, const ElectionSettings& settings);
ElectionMove decide(const Standing& standing, const ElectionSettings& settings, base::Moment now,
                    base::WallTime wall);

// What became of it.
Standing after_look(Standing standing, const std::optional<LeaseRecord>& lease, base::Moment now);
// `sent_at` is from before the request left.
Standing after_put(Standing standing, const ElectionSettings& settings, const LeaseRecord& written,
                   base::Moment sent_at, base::Moment now);
// It is not known what came of it, or another was faster: look before anything else.
Standing after_failure(Standing standing);

// The lease, given back.
LeaseRecord released(const LeaseRecord& held, base::WallTime wall);

}  // namespace kube
