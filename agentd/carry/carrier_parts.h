#pragma once

#include <functional>
#include <optional>

#include "agentd/carry/roster.h"
#include "agentd/dial/dial.h"
#include "agentd/metrics/metrics.h"
#include "agentd/way/directory.h"
#include "agentd/way/way.h"
#include "libs/base/clock.h"

namespace agentd {

// How long a carrier waits for what.
struct CarrierTimes {
  base::Milliseconds hello{5'000};
  base::Milliseconds first_welcome{10'000};    // From hello on; then the harness is sent away.
  base::Milliseconds ask_every{300'000};       // Whether the harness may still attach, and
  base::Milliseconds ask_before_end{120'000};  // so long before its attach token ends.
  // Of the attach service; and no sooner in any case. At most ask_every.
  base::Milliseconds ask_after_silence{30'000};
  base::Milliseconds look{1'000};        // At who fell silent.
  base::Milliseconds hang_up{1'000};     // For a peer that was told why.
  base::Milliseconds last_word{3'000};   // The same, if it reads at all.
  base::Milliseconds end_later{60'000};  // For an executor to be back, to hear of a session's end.
};

// What all carriers of an agentd work with.
struct CarrierParts {
  aio::Executor executor;
  const Dialler& dialler;
  WaysIn& ways;
  Directory& directory;
  Roster& roster;
  Counts& counts;
  const base::Clock& clock;
  std::optional<wire::SandboxName> usual;  // For a hello that names no sandbox.
  std::function<double()> jitter;          // 0 to 1.
  CarrierTimes times = {};
};

}  // namespace agentd
