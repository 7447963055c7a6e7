#include "libs/wire/expiry.h"

namespace wire {

base::Json to_json(const TimeOfDay& time) { return {{"nowMs", time.now_ms}}; }

base::Json expired_body(base::WallTime now) {
  base::Json json = to_json(TimeOfDay{now.time_since_epoch().count()});
  json["error"] = "token refused: expired";
  return json;
}

base::Result<TimeOfDay> time_of_day_from_json(const base::Json& json) {
  const auto now = base::integer_at(json, "nowMs");
  if (!now || *now < 0)
    return base::error(base::ErrorCode::kInvalid, "\"nowMs\" must be a whole number of 0 or more");
  return TimeOfDay{*now};
}

}  // namespace wire
