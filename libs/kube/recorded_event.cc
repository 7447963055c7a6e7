#include "libs/kube/recorded_event.h"

#include <algorithm>

#include "libs/base/time.h"

namespace kube {

using base::Json;

namespace {

std::optional<base::WallTime> time_at(const Json& object, const char* key) {
  const auto text = base::text_at(object, key);
  if (!text) return std::nullopt;
  const auto time = base::parse_rfc3339(*text);
  if (!time) return std::nullopt;
  return *time;
}

const Json& object_or_none(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const Json* found = base::object_at(object, key);
  return found ? *found : kNone;
}

}  // namespace

std::optional<api::RecordedEvent> recorded_event_from(const Json& event) {
  const Json& about = object_or_none(event, "regarding");
  const Json& series = object_or_none(event, "series");
  const Json& metadata = object_or_none(event, "metadata");
  api::RecordedEvent read;
  read.regarding = {base::text_at(about, "namespace").value_or(""),
                    base::text_at(about, "name").value_or("")};
  if (read.regarding.name.empty()) return std::nullopt;
  read.regarding_uid = base::text_at(about, "uid").value_or("");
  read.event = {
      base::text_at(event, "type").value_or(""), base::text_at(event, "reason").value_or(""),
      base::text_at(event, "action").value_or(""), base::text_at(event, "note").value_or("")};
  // Who wrote through the core API left eventTime empty.
  const auto first_of = [](std::initializer_list<std::optional<base::WallTime>> times) {
    for (const auto& time : times)
      if (time) return *time;
    return base::WallTime{};
  };
  read.first = first_of({time_at(event, "eventTime"), time_at(event, "deprecatedFirstTimestamp"),
                         time_at(metadata, "creationTimestamp")});
  read.last = std::max(read.first, first_of({time_at(series, "lastObservedTime"),
                                             time_at(event, "deprecatedLastTimestamp")}));
  read.count = std::max<std::int64_t>(
      1, base::integer_at(series, "count")
             .value_or(base::integer_at(event, "deprecatedCount").value_or(1)));
  return read;
}

}  // namespace kube
