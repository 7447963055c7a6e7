#include "libs/kube/reflector.h"

#include <random>

#include "libs/base/log.h"
#include "libs/base/rest.h"
#include "libs/kube/explain.h"

namespace kube {

using base::Json;
using base::Milliseconds;

namespace {

const Refusal* refusal_in(const Outcome& outcome) {
  if (const auto* refused = std::get_if<Refused>(&outcome)) return &refused->refusal;
  const auto* watch = std::get_if<WatchEnded>(&outcome);
  return watch && watch->refusal ? &*watch->refusal : nullptr;
}

}  // namespace

double random_chance() {
  thread_local std::mt19937 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

void make_compact(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  metadata->erase("managedFields");
  const auto annotations = metadata->find("annotations");
  if (annotations != metadata->end() && annotations->is_object())
    annotations->erase("kubectl.kubernetes.io/last-applied-configuration");
}

Reflector::Reflector(Client& client, const base::Clock& clock, Resource resource, Scope scope,
                     Mirror& mirror, ReflectorSettings settings)
    : client_(client),
      clock_(clock),
      resource_(std::move(resource)),
      scope_(std::move(scope)),
      mirror_(mirror),
      settings_(std::move(settings)) {}

Reflector::~Reflector() = default;

void Reflector::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ReflectorStats Reflector::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Reflector::run(const std::stop_token& stop) {
  Move move = first_move(settings_.course);
  while (!stop.stop_requested()) {
    const Outcome outcome = std::visit([&](const auto& leg) { return walk(leg, stop); }, move.leg);
    if (stop.stop_requested()) return;
    Move next = next_move(move.course, move.leg, outcome, settings_.course, settings_.chance());
    tell(move.leg, outcome, next);
    move = std::move(next);
    base::rest(move.after, stop);
  }
}

Outcome Reflector::walk(const ListPage& page, const std::stop_token& stop) {
  if (page.continue_token.empty()) mirror_.begin_list();
  auto listed = client_.list(
      resource_, scope_,
      {.limit = page.whole ? 0 : settings_.page_size, .continue_token = page.continue_token}, stop);
  if (!listed) return Refused{listed.error()};
  for (Json& item : listed->items) {
    make_compact(item);
    mirror_.list_item(std::move(item));
  }
  if (listed->continue_token.empty()) mirror_.complete_list(listed->resource_version);
  return Listed{listed->resource_version, listed->continue_token};
}

Outcome Reflector::walk(const ListStream&, const std::stop_token& stop) {
  mirror_.begin_list();
  std::string whole_at;
  const auto take = [&](WatchEvent&& event) {
    if (ends_initial_events(event)) {
      whole_at = resource_version_of(event.object);
      return false;
    }
    if (event.kind != WatchEvent::Kind::kAdded) return true;
    make_compact(event.object);
    mirror_.list_item(std::move(event.object));
    return true;
  };
  const auto end = client_.watch(
      resource_, scope_, {.silence_max = settings_.stream_silence_max, .initial_events = true},
      take, stop);
  if (!whole_at.empty()) {
    mirror_.complete_list(whole_at);
    return Listed{whole_at};
  }
  if (!end) return Refused{end.error()};
  return Refused{Refusal{base::error(base::ErrorCode::kUnavailable, "list ", resource_.plural,
                                     ": the stream ended before its list was whole")}};
}

Outcome Reflector::walk(const Watch& watch, const std::stop_token& stop) {
  {
    std::lock_guard lock(mutex_);
    ++stats_.watches;
  }
  const auto spread = static_cast<double>((settings_.watch_max - settings_.watch_min).count());
  const base::Seconds timeout =
      settings_.watch_min + base::Seconds(static_cast<std::int64_t>(spread * settings_.chance()));
  WatchEnded ended{watch.resource_version};
  const auto take = [&](WatchEvent&& event) {
    const std::string at = resource_version_of(event.object);
    if (!at.empty()) ended.resource_version = at;
    ended.progressed = true;
    make_compact(event.object);
    mirror_.take(std::move(event));
    std::lock_guard lock(mutex_);
    ++stats_.events;
    return true;
  };
  const base::Moment before = clock_.now();
  const auto end = client_.watch(resource_, scope_,
                                 {.resource_version = watch.resource_version,
                                  .timeout = timeout,
                                  .silence_max = settings_.silence_max},
                                 take, stop);
  ended.lasted = clock_.now() - before;
  if (!end) ended.refusal = end.error();
  return ended;
}

Outcome Reflector::walk(const Probe&, const std::stop_token& stop) {
  const auto listed = client_.list(resource_, scope_, {.limit = 1}, stop);
  if (!listed) return Refused{listed.error()};
  return Listed{listed->resource_version};
}

void Reflector::tell(const Leg& leg, const Outcome& outcome, const Move& next) {
  const Refusal* refusal = refusal_in(outcome);
  const auto* listed = std::get_if<Listed>(&outcome);
  const bool completed =
      listed && listed->continue_token.empty() && !std::holds_alternative<Probe>(leg);
  {
    std::lock_guard lock(mutex_);
    if (refusal) ++stats_.failures;
    if (completed) ++stats_.lists;
  }
  if (settings_.on_leg) return settings_.on_leg({refusal, next.course.failures, next.after});
  if (!refusal) return;
  // One cut is everyday life; what goes on is worth a look.
  const auto say = next.course.failures > 1 ? base::log::warn : base::log::debug;
  say("The mirror of a collection was cut off", {{"resource", resource_.plural},
                                                 {"error", explain(*refusal, client_.config())},
                                                 {"failures", next.course.failures},
                                                 {"retry_ms", next.after.count()}});
}

}  // namespace kube
