#pragma once

#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/result.h"

// What a shard's lease makes of this process: pure.
namespace controller {

// How long heartbeats go on without a lease while nobody else is seen to hold it.
inline constexpr base::Milliseconds kUnledMax = std::chrono::hours(1);

// The lease as its elector sees it after a turn.
struct LeaseView {
  std::string name;  // Of the Lease object.
  bool may_act = false;
  int tenures = 0, spells = 0;
  std::string holder = {};  // When it was last seen; empty: nobody's.
};

// What is remembered between the turns.
struct Tenure {
  bool acting = false;
  int spells = 0;              // Those that were told of.
  base::Moment acted_at = {};  // When we last could act.
};

struct TenureNews {
  Tenure tenure;
  // We may act for the shard, after a moment in which we could not: what was passed over then is to
  // be looked at.
  bool gained = false;
  // This process must end and begin anew, for what it remembers is not what is: another acts or has
  // acted in its place.
  std::optional<base::Error> over = {};
};

TenureNews after_turn(const Tenure& before, const LeaseView& lease, const std::string& identity,
                      base::Moment now);

}  // namespace controller
