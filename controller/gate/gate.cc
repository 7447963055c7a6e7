#include "controller/gate/gate.h"

#include <algorithm>
#include <utility>

namespace controller {

// The provider through the gate, for one priority.
class Gate::View final : public e2b::Cloud {
 public:
  using Done = std::function<void(base::Result<base::Done>)>;

  View(Gate& gate, Priority priority) : gate_(gate), priority_(priority) {}

  base::Result<e2b::Handle, e2b::CreateFailure> create(const e2b::NewSandbox& wanted,
                                                       std::stop_token stop) override {
    using Kind = e2b::CreateFailure::Kind;
    if (auto held = gate_.held_back(priority_)) return e2b::CreateFailure{*held, Kind::kNotSent};
    const Place place(gate_, priority_, stop);
    if (!place.taken()) return e2b::CreateFailure{cancelled(), Kind::kNotSent};
    auto made = gate_.cloud_->create(wanted, stop);
    if (made) {
      gate_.free_creates();
    } else if (made.error().kind == Kind::kQuota) {
      gate_.hold_creates();
    } else {
      learn(made.error());
    }
    return made;
  }

  base::Result<e2b::Told<std::optional<e2b::SandboxInfo>>> get(const std::string& id,
                                                               std::stop_token stop) override {
    return pass(stop, [&] { return gate_.cloud_->get(id, stop); });
  }
  base::Result<std::optional<e2b::Handle>> handle(const std::string& id,
                                                  std::stop_token stop) override {
    return pass(stop, [&] { return gate_.cloud_->handle(id, stop); });
  }
  base::Result<e2b::Told<std::vector<e2b::SandboxInfo>>> list(const e2b::Filter& filter,
                                                              std::stop_token stop) override {
    return pass(stop, [&] { return gate_.cloud_->list(filter, stop); });
  }
  base::Result<e2b::KillAnswer> kill(const std::string& id, std::stop_token stop) override {
    auto killed = pass(stop, [&] { return gate_.cloud_->kill(id, stop); });
    if (killed) gate_.free_creates();
    return killed;
  }
  base::Result<e2b::PauseAnswer> pause(const std::string& id, std::stop_token stop) override {
    auto paused = pass(stop, [&] { return gate_.cloud_->pause(id, stop); });
    if (paused) gate_.free_creates();
    return paused;
  }
  base::Result<e2b::Connected> connect(const std::string& id, base::Seconds timeout,
                                       std::stop_token stop) override {
    return pass(stop, [&] { return gate_.cloud_->connect(id, timeout, stop); });
  }
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override {
    return pass(stop, [&] { return gate_.cloud_->extend(id, timeout, stop); });
  }
  // Heartbeats have their own bound, in the engine; here they only heed what the provider asked.
  void start_extend(const std::string& id, base::Seconds timeout, Done done) override {
    if (auto held = gate_.held_back(priority_)) return done(*held);
    gate_.cloud_->start_extend(id, timeout, learning(std::move(done)));
  }
  void start_refresh(const std::string& id, base::Seconds timeout, Done done) override {
    if (auto held = gate_.held_back(priority_)) return done(*held);
    gate_.cloud_->start_refresh(id, timeout, learning(std::move(done)));
  }

 private:
  Done learning(Done done) {
    return [this, done = std::move(done)](auto result) {
      if (!result) learn(result.error());
      done(std::move(result));
    };
  }
  static base::Error cancelled() {
    return {base::ErrorCode::kCancelled, "the controller is stopping"};
  }
  void learn(const base::Error& error) {
    if (error.code == base::ErrorCode::kRateLimited && error.retry_after)
      gate_.hold(*error.retry_after);
  }
  template <typename Call>
  auto pass(std::stop_token stop, Call call) -> decltype(call()) {
    if (auto held = gate_.held_back(priority_)) return *held;
    const Place place(gate_, priority_, stop);
    if (!place.taken()) return cancelled();
    auto result = call();
    if (!result) learn(result.error());
    return result;
  }

  Gate& gate_;
  const Priority priority_;
};

Gate::Gate(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock, GateOptions options)
    : cloud_(std::move(cloud)), clock_(clock), options_(options) {
  for (std::size_t i = 0; i < kPriorities; ++i)
    views_[i] = std::make_unique<View>(*this, static_cast<Priority>(i));
}

Gate::~Gate() = default;

e2b::Cloud& Gate::as(Priority priority) { return *views_[static_cast<std::size_t>(priority)]; }

Gate::Stats Gate::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats{.in_flight = in_flight_,
              .throttled_by_rate = by_rate_,
              .throttled_by_quota = by_quota_,
              .held_for = std::max(base::Milliseconds(0), held_until_ - clock_.now())};
  for (const auto waiting : waiting_) stats.waiting += waiting;
  return stats;
}

void Gate::hold(base::Milliseconds retry_after) {
  std::lock_guard lock(mutex_);
  ++by_rate_;
  held_until_ = std::max(held_until_, clock_.now() + retry_after);
}

void Gate::hold_creates() {
  std::lock_guard lock(mutex_);
  ++by_quota_;
  creates_held_until_ = clock_.now() + options_.quota_hold;
}

void Gate::free_creates() {
  std::lock_guard lock(mutex_);
  creates_held_until_ = {};
}

bool Gate::creates_held() const {
  std::lock_guard lock(mutex_);
  return clock_.now() < creates_held_until_;
}

std::optional<base::Error> Gate::held_back(Priority priority) const {
  std::lock_guard lock(mutex_);
  const base::Moment now = clock_.now();
  base::Error error{base::ErrorCode::kRateLimited, {}};
  if (now < held_until_) {
    error.message = "the provider asked for a pause between requests";
    error.retry_after = held_until_ - now;
    return error;
  }
  if (priority == Priority::kCreate && now < creates_held_until_) {
    error.message = "the provider's quota of sandboxes is used up";
    error.retry_after = creates_held_until_ - now;
    return error;
  }
  return std::nullopt;
}

// The most urgent class that waits, unless one has let enough others go first.
std::size_t Gate::first_in_line() const {
  std::size_t first = kPriorities;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    if (waiting_[i] == 0) continue;
    if (passed_over_[i] >= options_.passed_over_max) return i;
    first = std::min(first, i);
  }
  return first;
}

void Gate::let_in(Priority priority) {
  ++in_flight_;
  for (std::size_t i = 0; i < kPriorities; ++i)
    if (waiting_[i] > 0) ++passed_over_[i];
  passed_over_[static_cast<std::size_t>(priority)] = 0;
}

Gate::Place::Place(Gate& gate, Priority priority, std::stop_token stop)
    : gate_(gate), priority_(priority) {
  std::unique_lock lock(gate_.mutex_);
  const auto own = static_cast<std::size_t>(priority_);
  auto& waiting = gate_.waiting_[own];
  ++waiting;
  taken_ = gate_.changed_.wait(lock, stop, [&] {
    return gate_.in_flight_ < gate_.options_.in_flight_max && gate_.first_in_line() == own;
  });
  --waiting;
  if (taken_) gate_.let_in(priority_);
  // Those behind look again: the line has moved, or one of it has left.
  gate_.changed_.notify_all();
}

Gate::Place::~Place() {
  if (!taken_) return;
  std::lock_guard lock(gate_.mutex_);
  --gate_.in_flight_;
  gate_.changed_.notify_all();
}

}  // namespace controller
