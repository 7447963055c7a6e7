#include "libs/kube/event_book.h"

#include <algorithm>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/kube/micro_time.h"

namespace kube {

using base::Json;
using base::Milliseconds;
using base::Moment;
using base::WallTime;

namespace {

// The API's own limits.
constexpr std::size_t kNoteBytesMax = 1'024;
constexpr std::size_t kWordBytesMax = 128;
constexpr std::size_t kNameBytesMax = 200;  // Of the part before the dot; a name has 253.

std::string cut(std::string_view text, std::size_t bytes_max) {
  return std::string(base::cut(text, bytes_max));
}

Json object_of(const api::Key& key, const Regarding& regarding, const api::Event& event,
               const EventSettings& settings, WallTime wall) {
  Json about = {{"apiVersion", api_version_of(regarding.resource)},
                {"kind", regarding.resource.kind},
                {"name", regarding.key.name},
                {"uid", regarding.uid}};
  if (!regarding.key.space.empty()) about["namespace"] = regarding.key.space;
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata", {{"name", key.name}, {"namespace", key.space}}},
          {"eventTime", to_micro_time(wall)},
          {"type", event.type},
          {"reason", cut(event.reason, kWordBytesMax)},
          {"action", cut(event.action.empty() ? event.reason : event.action, kWordBytesMax)},
          {"note", cut(event.note, kNoteBytesMax)},
          {"regarding", std::move(about)},
          {"reportingController", settings.controller},
          {"reportingInstance", cut(settings.instance, kWordBytesMax)}};
}

}  // namespace

bool EventBook::may_write(const Regarding& regarding, Moment now) {
  if (!all_) all_.emplace(settings_.all, now);
  return each_.take(regarding.uid, now) && all_->take(now);
}

std::optional<EventWrite> EventBook::record(const Regarding& regarding, const api::Event& event,
                                            Moment now, WallTime wall) {
  const Same same{regarding.uid, event.type, event.reason, event.action, event.note};
  if (const auto known = known_.find(same); known != known_.end()) {
    const Place place = *known;
    Series& series = *place;
    if (now - series.last < settings_.series_gap) {
      ++series.count;
      series.last = now;
      series.last_wall = wall;
      series_.splice(series_.end(), series_, place);
      // The second makes it a series, which people should see at once.
      if (series.count == 2) return write_series(series, now);
      return std::nullopt;
    }
    known_.erase(known);
    series_.erase(place);
  }
  if (!may_write(regarding, now)) {
    ++suppressed_;
    return std::nullopt;
  }
  const api::Key key{regarding.key.space.empty() ? "default" : regarding.key.space,
                     cut(regarding.key.name, kNameBytesMax) + "." + base::random_hex(8)};
  series_.push_back({same, key, 1, 1, wall, now, now});
  known_.insert(std::prev(series_.end()));
  if (series_.size() > kEventsKept) {
    known_.erase(series_.begin());
    series_.pop_front();
  }
  return EventWrite{key, true, object_of(key, regarding, event, settings_, wall)};
}

EventWrite EventBook::write_series(Series& series, Moment now) const {
  series.written = now;
  series.written_count = series.count;
  return {series.key, false,
          Json{{"series",
                {{"count", series.count}, {"lastObservedTime", to_micro_time(series.last_wall)}}}}};
}

std::vector<EventWrite> EventBook::due(Moment now) {
  std::vector<EventWrite> writes;
  for (Series& series : series_)
    if (series.count > series.written_count && now - series.written >= settings_.refresh)
      writes.push_back(write_series(series, now));
  return writes;
}

void EventBook::forget(const api::Key& event) {
  const auto series = std::ranges::find(series_, event, &Series::key);
  if (series == series_.end()) return;
  known_.erase(series);
  series_.erase(series);
}

}  // namespace kube
