#include "controller/gate/room.h"

namespace controller {

std::optional<base::Error> Room::none(base::Moment now) const {
  if (!full_) return std::nullopt;
  const bool held = now < until_;
  if (!held && asking_ < askers_max_) return std::nullopt;
  return base::Error{base::ErrorCode::kRateLimited, why_, held ? until_ - now : kAskAgain};
}

Room::Sent Room::send() {
  if (full_) ++asking_;
  return {.asks = full_, .endings = endings_};
}

void Room::learn(const Sent& sent, Answer answer, base::Moment now, const std::string& why) {
  if (sent.asks) --asking_;
  if (answer == Answer::kFull) {
    // What has ended since it left may not have counted yet.
    until_ = sent.endings == endings_ ? now + hold_ : now;
    full_ = true;
    askers_max_ = 1;
    why_ = why;
    return;
  }
  // One that left before the provider was full tells nothing of it now.
  if (!sent.asks || !full_) return;
  if (answer == Answer::kMade && ++askers_max_ > kAskersMax) full_ = false;
  if (answer == Answer::kNone) until_ = now + hold_;
}

bool Room::ended(base::Moment now) {
  ++endings_;
  if (!full_ || now >= until_) return false;
  until_ = now;
  return true;
}

}  // namespace controller
