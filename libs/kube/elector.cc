#include "libs/kube/elector.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/rest.h"

namespace kube {

using base::Milliseconds;
using base::Moment;

namespace {

// Once in a row for each reason: who cannot hold a lease does nothing, and somebody should know
// why.
void tell(std::optional<Reason>& told, std::string_view what, const Refusal& refusal) {
  const bool again = std::exchange(told, refusal.reason) == refusal.reason;
  (again ? base::log::debug : base::log::warn)(what, {{"error", refusal}});
}

}  // namespace

Elector::Elector(LeaseStore& store, const base::Clock& clock, ElectionSettings settings,
                 Clear clear, std::function<double()> chance)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)),
      clear_(std::move(clear)),
      chance_(std::move(chance)) {}

Elector::~Elector() = default;

bool Elector::may_act() const { return clock_.now() < acts_until_.load(); }

std::string Elector::holder() const {
  std::lock_guard lock(mutex_);
  return holder_;
}

void Elector::set(Standing standing) {
  standing_ = std::move(standing);
  acts_until_ = standing_.acts_until;
  std::lock_guard lock(mutex_);
  holder_ = standing_.seen ? standing_.seen->holder : "";
}

Milliseconds Elector::jittered(Milliseconds time) const {
  return time +
         Milliseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * chance_() / 2));
}

Milliseconds Elector::turn(std::stop_token stop) {
  for (;;) {
    const auto move = decide(standing_, settings_, clock_.now(), clock_.wall());
    if (const auto* rest = std::get_if<Rest>(&move)) {
      standing_.known = false;  // What we know will be old when we wake up.
      // Sooner than told, so that what is given back has a new holder within that time.
      return rest->time - jittered(rest->time) / 3;
    }
    if (std::holds_alternative<Look>(move)) {
      if (holds(standing_, settings_)) ++slow_paths_;
      const auto seen = store_.get(stop);
      if (!seen) {
        tell(unread_, "A lease cannot be read", seen.error());
        return jittered(settings_.retry);
      }
      unread_.reset();
      set(after_look(standing_, *seen, clock_.now()));
      continue;
    }
    return put(std::get<Put>(move).record, stop);
  }
}

bool Elector::is_clear(const std::stop_token& stop) {
  const auto clear = clear_(stop);
  if (!clear) tell(unclear_, "Whether others lead cannot be told", clear.error());
  if (clear) unclear_.reset();
  return clear && *clear;
}

// Not jittered where all is well: a holder renews on time.
Milliseconds Elector::put(const LeaseRecord& record, std::stop_token stop) {
  // First of all: whatever time passes from here on is taken off that in which we may act.
  const Moment sent_at = clock_.now();
  const bool acting = sent_at < acts_until_.load();
  if (!acting && !is_clear(stop)) {
    release(stop);
    return jittered(settings_.retry);
  }
  const auto written = store_.put(record, stop);
  if (!written) {
    // Others may be faster.
    if (written.error().code == base::ErrorCode::kConflict)
      base::log::debug("A lease was another's", {{"error", written.error()}});
    else
      tell(unwritten_, "A lease cannot be written", written.error());
    set(after_failure(standing_));
    return jittered(settings_.retry / 4);
  }
  unwritten_.reset();
  Standing standing = after_put(standing_, settings_, *written, sent_at, clock_.now());
  const Moment acts_until = std::exchange(standing.acts_until, standing_.acts_until);
  set(standing);
  if (!acting && !is_clear(stop)) {
    release(stop);
    return jittered(settings_.retry);
  }
  if (written->transitions != transitions_) {
    transitions_ = written->transitions;
    since_ = clock_.now();
    ++tenures_;
  }
  if (clock_.now() >= standing_.acts_until) ++spells_;
  standing.acts_until = acts_until;
  set(std::move(standing));
  return settings_.retry;
}

void Elector::release(std::stop_token stop) {
  acts_until_ = Moment{};
  standing_.acts_until = Moment{};
  // The last renewal may have come true though nobody heard of it; then a look tells its version.
  for (int tries = 0; tries < kReleaseTriesMax && holds(standing_, settings_); ++tries) {
    if (!standing_.known) {
      const auto seen = store_.get(stop);
      if (seen) set(after_look(standing_, *seen, clock_.now()));
      if (!seen || !holds(standing_, settings_)) continue;
    }
    const auto freed = store_.put(released(*standing_.seen, clock_.wall()), stop);
    if (!freed) base::log::debug("A lease was not given back", {{"error", freed.error()}});
    set(freed ? after_look(standing_, *freed, clock_.now()) : after_failure(standing_));
  }
}

void Elector::start(std::function<void()> turned) {
  turned_ = std::move(turned);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Elector::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Milliseconds pause = turn(stop);
    turned_();
    base::rest(pause, stop);
  }
  release({});
  turned_();
}

}  // namespace kube
