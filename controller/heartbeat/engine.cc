#include "controller/heartbeat/engine.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace controller {
namespace {

using Milliseconds = base::Milliseconds;
constexpr Milliseconds kStepMax{1'000};

// There is one of each sandbox that runs: what it needs, and no more.
struct Entry {
  std::string id = {};
  std::shared_ptr<Gate> gate = {};
  base::Seconds timeout{0}, interval{0};
  base::Moment due = {}, lease_end = {};
  int failures = 0;
  std::uint64_t turn = 0;  // Of the beat in flight; 0: none.
};
using Entries = std::map<std::string, Entry>;  // By UID.
using Named = Entries::value_type;

struct Send {
  std::string uid, id;
  std::shared_ptr<Gate> gate;
  base::Seconds timeout;
  std::uint64_t turn;
  base::Moment sent;
  Milliseconds lateness;
};

}  // namespace

struct Engine::State {
  State(const base::Clock& clock, EngineOptions options, News news)
      : clock(clock), options(options), news(std::move(news)) {}

  // A share of `whole`, so that beats which began together drift apart.
  Milliseconds part(Milliseconds whole, double least, double most) {
    const double share = std::uniform_real_distribution(least, most)(random);
    return Milliseconds(static_cast<std::int64_t>(static_cast<double>(whole.count()) * share));
  }
  void unlist(const Named& named) {
    by_due.erase({named.second.due, &named});
    by_urgency.erase({named.second.lease_end, &named});
  }
  void schedule(Named& named, base::Moment due) {
    unlist(named);
    named.second.due = due;
    by_due.emplace(due, &named);
    changed.notify_all();
  }
  std::vector<Send> take_due();
  void answered(const Send& send, const base::Result<base::Done>& result);
  bool settle(const Send& send, const base::Result<base::Done>& result);

  const base::Clock& clock;
  const EngineOptions options;
  const News news;
  mutable std::mutex mutex;
  std::condition_variable_any changed;
  Entries entries;
  // An entry is in the first until it is due, then in the second until it has a place in flight.
  std::set<std::pair<base::Moment, const Named*>> by_due, by_urgency;
  std::map<std::string, std::size_t> flying;  // By UID; outlives a dropped entry.
  std::size_t in_flight = 0;
  std::uint64_t turns = 0;
  std::minstd_rand random{std::random_device{}()};
};

Engine::Engine(const base::Clock& clock, EngineOptions options, News news)
    : state_(std::make_shared<State>(clock, options, std::move(news))) {}
Engine::~Engine() {
  // Answers that are still on their way find nothing to tell.
  std::lock_guard lock(state_->mutex);
  state_->entries.clear();
  state_->by_due.clear();
  state_->by_urgency.clear();
}

void Engine::keep(const Beat& beat) {
  std::lock_guard lock(state_->mutex);
  const auto [found, is_new] = state_->entries.try_emplace(beat.uid);
  Entry& entry = found->second;
  const bool same = !is_new && entry.id == beat.id;
  const bool sooner = !same || beat.interval < entry.interval;
  entry.id = beat.id;
  entry.gate = beat.gate;
  entry.timeout = beat.timeout;
  entry.interval = beat.interval;
  if (!sooner) return;
  const base::Moment now = state_->clock.now();
  if (!same) {
    state_->unlist(*found);
    entry.lease_end = now + beat.left.value_or(beat.timeout);
    entry.turn = 0;
  }
  if (entry.turn != 0) return;  // Its answer schedules the next.
  const bool urgent = entry.lease_end - now < 2 * beat.interval;
  state_->schedule(*found, urgent ? now : now + state_->part(beat.interval, 0, 1));
}

void Engine::drop(const std::string& uid) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->entries.find(uid);
  if (found == state_->entries.end()) return;
  state_->unlist(*found);
  state_->entries.erase(found);
}

void Engine::drain(const std::string& uid) {
  drop(uid);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->flying.contains(uid); });
}

// Due beats are ordered by the lease that they save, and leave while there are places.
std::vector<Send> Engine::State::take_due() {
  const base::Moment now = clock.now();
  while (!by_due.empty() && by_due.begin()->first <= now) {
    const Named* named = by_due.begin()->second;
    by_due.erase(by_due.begin());
    by_urgency.emplace(named->second.lease_end, named);
  }
  std::vector<Send> sends;
  while (!by_urgency.empty() && in_flight < options.in_flight_max) {
    const std::string& uid = by_urgency.begin()->second->first;
    by_urgency.erase(by_urgency.begin());
    Entry& entry = entries.at(uid);
    entry.turn = ++turns;
    ++in_flight;
    ++flying[uid];
    sends.push_back({uid, entry.id, entry.gate, entry.timeout, entry.turn, now, now - entry.due});
  }
  return sends;
}

// True: the sandbox was not there, or between two states.
bool Engine::State::settle(const Send& send, const base::Result<base::Done>& result) {
  std::lock_guard lock(mutex);
  --in_flight;
  if (--flying[send.uid] == 0) flying.erase(send.uid);
  changed.notify_all();
  const auto found = entries.find(send.uid);
  if (found == entries.end() || found->second.turn != send.turn) return false;
  Entry& entry = found->second;
  entry.turn = 0;
  const base::Moment now = clock.now();
  const Milliseconds interval = entry.interval;
  if (result) {
    entry.failures = 0;
    entry.lease_end = std::max(entry.lease_end, send.sent + entry.timeout);
    schedule(*found, std::max(now, send.sent + part(interval, 0.85, 1)));
    return false;
  }
  const bool missed = result.error().code == base::ErrorCode::kNotFound ||
                      result.error().code == base::ErrorCode::kConflict;
  const auto growing = options.retry_min * (1 << std::min(entry.failures++, 10));
  auto delay = missed ? interval : part(std::min<Milliseconds>(interval, growing), 0.5, 1);
  if (result.error().retry_after) delay = std::max(delay, *result.error().retry_after);
  schedule(*found, now + delay);
  return missed;
}

void Engine::State::answered(const Send& send, const base::Result<base::Done>& result) {
  if (settle(send, result)) news.missed(send.uid);
}

base::Moment Engine::step() {
  std::vector<Send> sends;
  {
    std::lock_guard lock(state_->mutex);
    sends = state_->take_due();
  }
  for (const Send& send : sends) {
    state_->news.sent(send.lateness);
    // `send` holds the gate, so that it lives until the answer is here.
    send.gate->as(Priority::kHeartbeat)
        .start_extend(send.id, send.timeout,
                      [state = state_, send](const base::Result<base::Done>& result) {
                        state->answered(send, result);
                      });
  }
  std::lock_guard lock(state_->mutex);
  const base::Moment latest = state_->clock.now() + kStepMax;
  return state_->by_due.empty() ? latest : std::min(latest, state_->by_due.begin()->first);
}

void Engine::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const base::Moment next = step();
    std::unique_lock lock(state_->mutex);
    const auto due = [&] {
      if (!state_->by_urgency.empty() && state_->in_flight < state_->options.in_flight_max)
        return true;
      return !state_->by_due.empty() && state_->by_due.begin()->first <= state_->clock.now();
    };
    const auto wait = std::max(Milliseconds(1), next - state_->clock.now());
    state_->changed.wait_for(lock, stop, wait, due);
  }
}

Engine::Stats Engine::stats() const {
  std::lock_guard lock(state_->mutex);
  Stats stats{.kept = state_->entries.size(), .in_flight = state_->in_flight};
  const base::Moment now = state_->clock.now();
  for (const auto& [uid, entry] : state_->entries)
    stats.margin = std::min(stats.margin.value_or(Milliseconds::max()), entry.lease_end - now);
  return stats;
}

}  // namespace controller
