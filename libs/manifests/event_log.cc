#include "libs/manifests/event_log.h"

#include <algorithm>

#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace manifests {

namespace fs = std::filesystem;
using api::RecordedEvent;
using base::Json;

namespace {

constexpr std::size_t kLinesMax = 4 * kEventsMax;
constexpr std::size_t kNoteBytesMax = 1024;  // As in events.k8s.io.

std::string line_of(const RecordedEvent& event) {
  return base::to_text(Json{{"namespace", event.regarding.space},
                            {"name", event.regarding.name},
                            {"uid", event.regarding_uid},
                            {"type", event.event.type},
                            {"reason", event.event.reason},
                            {"action", event.event.action},
                            {"note", event.event.note},
                            {"first", base::to_rfc3339(event.first)},
                            {"last", base::to_rfc3339(event.last)},
                            {"count", event.count}}) +
         "\n";
}

std::optional<RecordedEvent> event_of(const std::string& line) {
  const auto json = base::parse_json(line);
  if (!json || !json->is_object()) return std::nullopt;
  const auto text = [&json](const char* key) { return base::text_at(*json, key).value_or(""); };
  const auto first = base::parse_rfc3339(text("first"));
  const auto last = base::parse_rfc3339(text("last"));
  if (!first || !last) return std::nullopt;
  return RecordedEvent{{text("namespace"), text("name")},
                       text("uid"),
                       {text("type"), text("reason"), text("action"), text("note")},
                       *first,
                       *last,
                       base::integer_at(*json, "count").value_or(1)};
}

// What makes an event a repeat of another.
using Same = std::tuple<std::string, std::string, std::string, std::string, std::string>;

Same sameness(const RecordedEvent& event) {
  return {event.regarding_uid, event.event.type, event.event.reason, event.event.action,
          event.event.note};
}

}  // namespace

base::Result<std::vector<RecordedEvent>> read_events(const fs::path& path) {
  const auto content = base::read_file(path);
  if (!content && content.error().code == base::ErrorCode::kNotFound)
    return std::vector<RecordedEvent>();
  if (!content) return content.error();
  // Lines stand in the order in which things happened, so a repeat moves its event to the end.
  std::list<RecordedEvent> events;
  std::map<Same, std::list<RecordedEvent>::iterator> known;
  for (const std::string& line : base::split(*content, '\n')) {
    auto event = event_of(line);
    if (!event) continue;
    const Same same = sameness(*event);
    if (const auto before = known.find(same); before != known.end()) events.erase(before->second);
    events.push_back(*std::move(event));
    known[same] = std::prev(events.end());
  }
  while (events.size() > kEventsMax) events.pop_front();
  return std::vector<RecordedEvent>(events.begin(), events.end());
}

EventLog::EventLog(fs::path path, const Disk& disk, const base::Clock& clock)
    : path_(std::move(path)), disk_(disk), clock_(clock) {
  auto events = read_events(path_);
  if (!events) {
    base::log::warn("the events of before cannot be read", {{"error", events.error()}});
    return;
  }
  for (RecordedEvent& event : *events) {
    events_.push_back(std::move(event));
    known_[sameness(events_.back())] = std::prev(events_.end());
  }
  lines_ = kLinesMax;  // How many lines the file has is not known: the next event rewrites it.
}

void EventLog::record(const api::Key& regarding, const std::string& uid, const api::Event& event) {
  std::lock_guard lock(mutex_);
  const base::WallTime now = clock_.wall();
  RecordedEvent recorded{regarding, uid, event, now, now};
  recorded.event.note = base::cut(event.note, kNoteBytesMax);
  if (const auto known = known_.find(sameness(recorded)); known != known_.end()) {
    recorded.first = known->second->first;
    recorded.count = known->second->count + 1;
    events_.erase(known->second);
  } else if (events_.size() >= kEventsMax) {
    known_.erase(sameness(events_.front()));
    events_.pop_front();
  }
  events_.push_back(recorded);
  known_[sameness(recorded)] = std::prev(events_.end());
  if (++lines_ > kLinesMax) {
    rewrite();
    return;
  }
  if (auto kept = disk_.append(path_, line_of(recorded), 0600); !kept)
    base::log::warn("an event cannot be kept", {{"error", kept.error()}});
}

void EventLog::rewrite() {
  std::string lines;
  for (const RecordedEvent& event : events_) lines += line_of(event);
  const auto kept = disk_.write(path_, lines, 0600);
  if (!kept) base::log::warn("events cannot be kept", {{"error", kept.error()}});
  lines_ = events_.size();
}

}  // namespace manifests
