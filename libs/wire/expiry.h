#pragma once

#include <cstdint>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

// The ends of tokens, where the clocks of fleet and sandbox differ. An executor that was shown an
// admin token of ours which has ended by its time says so, with what time it is, and proves that;
// the controller then tells it the time, by a token that is good by that of the executor.
//   401 {"error":…, "nowMs":…}      POST /v1/time {"nowMs":…} -> 200 Health
namespace wire {

struct TimeOfDay {
  std::int64_t now_ms = 0;  // Unix milliseconds.
};
base::Json to_json(const TimeOfDay& time);
base::Json expired_body(base::WallTime now);
base::Result<TimeOfDay> time_of_day_from_json(const base::Json& json);

}  // namespace wire
