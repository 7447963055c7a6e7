#include "libs/wire/client/connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/unix_socket.h"
#include "libs/wire/proof.h"

namespace wire {
namespace {

constexpr base::Milliseconds kTick{250};

double new_chance() {
  const std::string bytes = base::random_bytes(2);
  const auto number =
      static_cast<unsigned char>(bytes[0]) * 256 + static_cast<unsigned char>(bytes[1]);
  return number / 65'536.0;
}

// Time that is left, for poll(2): rounded up, so that nobody wakes too early again and again.
int poll_timeout(base::Moment now, base::Moment until) {
  if (until == base::Moment::max()) return -1;
  const auto left = std::chrono::ceil<base::Milliseconds>(until - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

Connection::Connection(ConnectionSettings settings, const base::Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      session_(settings_.session),
      begun_(clock.now()),
      dial_at_(begun_) {}

Connection::~Connection() = default;

// ---- For straight-line code ------------------------------------------------------------------

base::Result<Welcome, Failure> Connection::open(Until until) {
  pollfd wake{.fd = until.wake, .events = POLLIN, .revents = 0};
  while (!welcome_ && !over_ && clock_.now() < until.moment && wake.revents == 0)
    turn({&wake, 1}, until.moment);
  if (welcome_) return *welcome_;
  if (over_) return *over_;
  if (wake.revents != 0) return failure(FailureCode::kCancelled, "it was given up");
  return too_late();
}

Failure Connection::too_late() const {
  return failure(FailureCode::kUnavailable, settings_.socket + ": no answer in time" +
                                                (trouble_.empty() ? "" : "; " + trouble_));
}

Failure Connection::out_of_patience() const {
  return failure(FailureCode::kUnavailable,
                 "there was no link for as long as the session lives without" +
                     (trouble_.empty() ? "" : ": " + trouble_));
}

base::Result<base::Json, Failure> Connection::ask(Call call, Until until) {
  const auto id = session_.ask(std::move(call));
  if (!id) return to_failure(id.error());
  pollfd wake{.fd = until.wake, .events = POLLIN, .revents = 0};
  while (true) {
    if (auto reply = reply_to(*id)) return *std::move(reply);
    if (over_ || clock_.now() >= until.moment || wake.revents != 0) return without_reply(*id);
    turn({&wake, 1}, until.moment);
  }
}

Failure Connection::without_reply(std::uint32_t id) {
  session_.cancel(id);
  hear_events();
  const Failure why =
      over_ ? *over_ : failure(FailureCode::kUnavailable, "no answer came while it was waited for");
  // One that nothing comes of is over at once; of one that may have been done only a reply can
  // tell.
  return reply_to(id) ? why : failure(FailureCode::kOutcomeUnknown, why.message);
}

std::optional<base::Result<base::Json, Failure>> Connection::reply_to(std::uint32_t id) {
  using Reply = base::Result<base::Json, Failure>;
  for (auto event = events_.begin(); event != events_.end(); ++event) {
    std::optional<Reply> reply;
    if (auto* answered = std::get_if<Answered>(&*event); answered && answered->id == id)
      reply.emplace(std::move(answered->ok));
    if (auto* failed = std::get_if<Failed>(&*event); failed && failed->id == id)
      reply.emplace(std::move(failed->failure));
    if (!reply) continue;
    events_.erase(event);
    return reply;
  }
  return std::nullopt;
}

void Connection::turn(std::span<pollfd> also, base::Moment until) {
  const std::size_t events_before = events_.size();
  const bool was_over = over_.has_value();
  move();
  const bool news = events_.size() != events_before || over_.has_value() != was_over;
  const base::Moment now = clock_.now();
  set_.assign(also.begin(), also.end());
  const auto events = static_cast<short>(POLLIN | (link_ && link_->blocked() ? POLLOUT : 0));
  set_.push_back({.fd = link_ ? link_->descriptor() : -1, .events = events, .revents = 0});
  if (::poll(set_.data(), set_.size(), poll_timeout(now, news ? now : next_moment(until))) < 0)
    for (pollfd& each : set_) each.revents = 0;  // A signal: the caller's to look at.
  for (std::size_t i = 0; i < also.size(); ++i) also[i].revents = set_[i].revents;
  if (link_ && set_.back().revents != 0) carry();
  move();
}

void Connection::finish(base::Milliseconds at_most) {
  const base::Moment end = clock_.now() + at_most;
  session_.finish();
  while (link_ && clock_.now() < end) {
    if (!link_->send([this] { return session_.next(); }) || !link_->blocked()) break;
    pollfd room{.fd = link_->descriptor(), .events = POLLOUT, .revents = 0};
    ::poll(&room, 1, poll_timeout(clock_.now(), end));
  }
  link_.reset();
  if (!over_) over_ = failure(FailureCode::kCancelled, "the session was ended");
}

// ---- Links -----------------------------------------------------------------------------------

base::Moment Connection::gives_up_at() const {
  if (!welcome_) return begun_ + settings_.open_within;
  return cut_since_ ? *cut_since_ + base::Milliseconds(welcome_->lease_ms) : base::Moment::max();
}

base::Moment Connection::next_moment(base::Moment until) const {
  if (over_) return until;
  const auto due = link_ ? std::min(tick_at_, renew_at_) : dial_at_;
  return std::min({until, due, gives_up_at()});
}

void Connection::move() {
  if (over_) return;
  if (clock_.now() >= gives_up_at()) return give_up(welcome_ ? out_of_patience() : too_late());
  if (link_)
    tend_link();
  else if (clock_.now() >= dial_at_)
    dial();
}

void Connection::dial() {
  const base::Moment now = clock_.now();
  auto credential = settings_.credential ? settings_.credential()
                                         : base::Result<Credential>(std::optional<std::string>());
  if (!credential) return go_without(credential.error());
  auto socket = base::connect_to(settings_.socket);
  if (!socket) {
    // Who was never there need not be waited for; who was may be restarting.
    if (!welcome_) return give_up(to_failure(socket.error()));
    return hang_up(std::nullopt);
  }
  link_.emplace(*std::move(socket));
  linked_at_ = tick_at_ = now;
  renew_at_ = base::Moment::max();
  session_.dial(*std::move(credential), new_nonce(), now);
  tend_link();
}

void Connection::tend_link() {
  const base::Moment now = clock_.now();
  if (now >= tick_at_) {
    session_.tick(now);
    hear_events();
    tick_at_ = now + kTick;
  }
  if (now >= renew_at_) renew_credential();
  const bool takes_more = link_->send([this] { return session_.next(); });
  while (!takes_more && hear() == Link::Received::kSome) {
  }  // It may have said why before it hung up.
  if (closed_ || !takes_more) hang_up(std::exchange(closed_, std::nullopt));
}

void Connection::carry() {
  if (hear() == Link::Received::kEnd && !closed_) hang_up(std::nullopt);
}

Link::Received Connection::hear() {
  const base::Moment now = clock_.now();
  const auto received =
      link_->receive([&](Frame frame) { session_.receive(std::move(frame), now); });
  hear_events();
  if (received) return *received;
  if (!closed_) closed_ = Close{CloseReason::kProtocol, received.error().message};
  return Link::Received::kEnd;
}

void Connection::hear_events() {
  const auto hear_welcome = [this](Welcomed& welcomed) {
    welcome_ = std::move(welcomed.welcome);
    cut_since_.reset();
    trouble_.clear();
    so_far_.denied = false;
    note_expiry(base::Milliseconds(welcome_->expires_ms));
  };
  const auto hear_renewed = [this](CredentialRenewed& event) {
    note_expiry(base::Milliseconds(event.renewed.expires_ms));
  };
  for (ClientEvent& event : session_.take_events())
    std::visit(base::Overloaded{
                   hear_welcome,
                   hear_renewed,
                   [this](Closed& closed) { closed_ = std::move(closed.close); },
                   [](StreamArrived&) {},
                   [](StreamRoom&) {},
                   [this](auto& other) { events_.emplace_back(std::move(other)); },
               },
               event);
}

void Connection::note_expiry(base::Milliseconds left) {
  renew_at_ = left.count() == 0 ? base::Moment::max() : clock_.now() + renew_after(left);
}

void Connection::renew_credential() {
  renew_at_ = base::Moment::max();
  if (!settings_.credential) return;
  // Without one the link ends when this one does, and the next dial says what is wrong.
  if (auto credential = settings_.credential()) session_.renew(*std::move(credential));
}

void Connection::hang_up(const std::optional<Close>& why) {
  const base::Moment now = clock_.now();
  const bool held = link_ && now - linked_at_ >= kSteady;
  link_.reset();
  session_.cut();
  if (welcome_ && !cut_since_) cut_since_ = now;
  if (held) so_far_.tries = 0;
  if (why) trouble_ = why->message;
  look_ahead();
  go_on(why ? after_close(*why, so_far_) : Redial{redial_after(so_far_)});
  so_far_.denied = why && why->reason == CloseReason::kDenied;
}

// It is asked for anew at the next dial.
void Connection::go_without(const base::Error& why) {
  trouble_ = why.message;
  look_ahead();
  go_on(without_credential(why, so_far_));
}

void Connection::look_ahead() {
  so_far_.chance = new_chance();
  so_far_.welcomed = welcome_.has_value();
}

void Connection::go_on(const AfterLink& after) {
  if (const auto* end = std::get_if<GiveUp>(&after)) return give_up(end->why);
  ++so_far_.tries;
  const auto& redial = std::get<Redial>(after);
  if (redial.anew) {
    session_.abandon(*redial.anew);
    hear_events();
  }
  dial_at_ = clock_.now() + redial.after;
}

void Connection::give_up(Failure why) {
  link_.reset();
  session_.cut();
  over_ = std::move(why);
}

}  // namespace wire
