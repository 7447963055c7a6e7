#include "controller/gate/gate.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace controller {
namespace {

Room::Answer answer_of(const base::Result<e2b::Handle, e2b::CreateFailure>& made) {
  if (made) return Room::Answer::kMade;
  switch (made.error().kind) {
    case e2b::CreateFailure::Kind::kQuota:
      return Room::Answer::kFull;
    case e2b::CreateFailure::Kind::kRefused:
    case e2b::CreateFailure::Kind::kRate:
      return Room::Answer::kBesides;
    case e2b::CreateFailure::Kind::kAmbiguous:
    case e2b::CreateFailure::Kind::kCapacity:
    case e2b::CreateFailure::Kind::kNotSent:
      break;
  }
  return Room::Answer::kNone;
}

}  // namespace

// The provider through the gate, for one priority.
class Gate::View final : public e2b::Cloud {
 public:
  using Done = std::function<void(base::Result<base::Done>)>;

  View(Gate& gate, Priority priority) : gate_(gate), priority_(priority) {}

  base::Result<e2b::Handle, e2b::CreateFailure> create(const e2b::NewSandbox& wanted,
                                                       std::stop_token stop) override {
    const auto not_sent = [](base::Error why) {
      return e2b::CreateFailure{std::move(why), e2b::CreateFailure::Kind::kNotSent};
    };
    if (auto held = gate_.held_back()) return not_sent(*std::move(held));
    const Place place(gate_, priority_, stop);
    if (!place.taken()) return not_sent(cancelled());
    const auto sent = gate_.leave_for_room();
    if (!sent) return not_sent({sent.error().code, sent.error().message});
    auto made = gate_.cloud_->create(wanted, stop);
    gate_.learn_of_room(*sent, made);
    if (!made) learn(made.error());
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
    return kill_if({}, id, stop);
  }
  base::Result<e2b::KillAnswer> kill_if(const Condition& condition, const std::string& id,
                                        std::stop_token stop) {
    auto killed = pass_if(condition, stop, [&] { return gate_.cloud_->kill(id, stop); });
    if (killed) gate_.something_ended();
    return killed;
  }
  base::Result<e2b::PauseAnswer> pause(const std::string& id, std::stop_token stop) override {
    return pause_if({}, id, stop);
  }
  base::Result<e2b::PauseAnswer> pause_if(const Condition& condition, const std::string& id,
                                          std::stop_token stop) {
    auto paused = pass_if(condition, stop, [&] { return gate_.cloud_->pause(id, stop); });
    if (paused) gate_.something_ended();
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
    if (auto held = gate_.held_back()) return done(*held);
    gate_.cloud_->start_extend(id, timeout, learning(std::move(done)));
  }
  void start_refresh(const std::string& id, base::Seconds timeout, Done done) override {
    if (auto held = gate_.held_back()) return done(*held);
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
    return pass_if({}, stop, std::move(call));
  }
  template <typename Call>
  auto pass_if(const Condition& condition, std::stop_token stop, Call call) -> decltype(call()) {
    if (auto held = gate_.held_back()) return *held;
    const Place place(gate_, priority_, stop);
    if (!place.taken()) return cancelled();
    if (condition) CHECK_OK(condition());
    auto result = call();
    if (!result) learn(result.error());
    return result;
  }

  Gate& gate_;
  const Priority priority_;
};

Gate::Gate(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock, GateOptions options,
           std::function<void()> room_again)
    : cloud_(std::move(cloud)),
      clock_(clock),
      options_(options),
      room_again_(std::move(room_again)),
      room_(options.quota_hold) {
  for (std::size_t i = 0; i < kPriorities; ++i)
    views_[i] = std::make_unique<View>(*this, static_cast<Priority>(i));
}

Gate::~Gate() = default;

e2b::Cloud& Gate::as(Priority priority) { return *views_[static_cast<std::size_t>(priority)]; }

base::Result<e2b::PauseAnswer> Gate::pause_if(const Condition& condition, const std::string& id,
                                              std::stop_token stop) {
  return views_[static_cast<std::size_t>(Priority::kPause)]->pause_if(condition, id, stop);
}

base::Result<e2b::KillAnswer> Gate::kill_if(const Condition& condition, const std::string& id,
                                            std::stop_token stop) {
  return views_[static_cast<std::size_t>(Priority::kDelete)]->kill_if(condition, id, stop);
}

std::optional<base::Error> Gate::no_room() const {
  std::lock_guard lock(mutex_);
  return room_.none(clock_.now());
}

bool Gate::kept_for_room(const e2b::CreateFailure& failure) {
  return failure.kind == e2b::CreateFailure::Kind::kNotSent &&
         failure.code == base::ErrorCode::kRateLimited && !failure.retry_after;
}

std::size_t Gate::waiting() const {
  std::lock_guard lock(mutex_);
  return std::accumulate(waiting_.begin(), waiting_.end(), std::size_t{0});
}

// A told wait; from then on every call is held back until it is over.
void Gate::hold(base::Milliseconds retry_after) {
  std::lock_guard lock(mutex_);
  held_until_ = std::max(held_until_, clock_.now() + retry_after);
}

std::optional<base::Error> Gate::held_back() const {
  std::lock_guard lock(mutex_);
  const base::Moment now = clock_.now();
  if (now >= held_until_) return std::nullopt;
  return base::Error{base::ErrorCode::kRateLimited,
                     "the provider asked for a pause between requests", held_until_ - now};
}

base::Result<Room::Sent> Gate::leave_for_room() {
  std::lock_guard lock(mutex_);
  if (auto none = room_.none(clock_.now())) return *std::move(none);
  return room_.send();
}

void Gate::learn_of_room(const Room::Sent& sent,
                         const base::Result<e2b::Handle, e2b::CreateFailure>& made) {
  std::lock_guard lock(mutex_);
  room_.learn(sent, answer_of(made), clock_.now(), made ? "" : made.error().message);
}

void Gate::something_ended() {
  const bool room = [&] {
    std::lock_guard lock(mutex_);
    return room_.ended(clock_.now());
  }();
  if (room && room_again_) room_again_();
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
