#include "libs/wire/client/redial.h"

#include <algorithm>

#include "libs/base/back_off.h"

namespace wire {
namespace {

Failure failure_of(FailureCode code, const Close& close) {
  if (!close.message.empty()) return failure(code, close.message);
  return failure(code, "the server closed the link: " + std::string(to_word(close.reason)));
}

GiveUp give_up(FailureCode code, const Close& close) { return {failure_of(code, close)}; }

base::Milliseconds as_asked(base::Milliseconds asked) {
  return std::clamp(asked, kRedialFirst, kBusyMost);
}
base::Milliseconds as_asked(const Close& close, base::Milliseconds otherwise) {
  return close.retry_after_ms ? as_asked(base::Milliseconds(*close.retry_after_ms)) : otherwise;
}

FailureCode code_of(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalid:
      return FailureCode::kInvalid;
    case base::ErrorCode::kDenied:
      return FailureCode::kDenied;
    case base::ErrorCode::kRateLimited:
      return FailureCode::kBusy;
    default:
      return FailureCode::kUnavailable;
  }
}

}  // namespace

base::Milliseconds redial_after(const Redialling& so_far) {
  return base::BackOff{kRedialFirst, kRedialMost}.after(so_far.tries + 1, so_far.chance);
}

base::Milliseconds renew_after(base::Milliseconds left) {
  return std::max(left * 4 / 5, kRenewLeast);
}

AfterLink after_close(const Close& close, const Redialling& so_far) {
  const auto usual = redial_after(so_far);
  switch (close.reason) {
    case CloseReason::kEnd:
      return give_up(FailureCode::kCancelled, close);
    case CloseReason::kReplaced:
      return give_up(FailureCode::kConflict, close);
    case CloseReason::kVersion:
      return give_up(FailureCode::kUnsupported, close);
    case CloseReason::kProtocol:  // At first it is our hello, which stays as it is.
      if (!so_far.welcomed) return give_up(FailureCode::kInternal, close);
      return Redial{usual, failure_of(FailureCode::kInternal, close)};
    case CloseReason::kDenied:  // Another credential may do, and each link gets a new one.
      if (so_far.denied) return give_up(FailureCode::kDenied, close);
      return Redial{usual};
    case CloseReason::kBusy:
      return Redial{as_asked(close, usual)};
    case CloseReason::kQuiesce:  // Who has nothing there yet has nothing to wait for.
      if (!so_far.welcomed) return give_up(FailureCode::kUnavailable, close);
      return Redial{as_asked(close, std::max(usual, kQuiescedFor))};
    case CloseReason::kExpired:
    case CloseReason::kShutdown:
    case CloseReason::kLost:
    case CloseReason::kSilent:
    case CloseReason::kImpostor:
    case CloseReason::kOther:
      return Redial{usual};
  }
  return Redial{usual};
}

AfterLink without_credential(const base::Error& why, const Redialling& so_far) {
  const bool absent = why.code == base::ErrorCode::kNotFound;
  const bool refused =
      why.code == base::ErrorCode::kDenied || why.code == base::ErrorCode::kInvalid;
  if (refused || (absent && !so_far.welcomed)) return GiveUp{to_failure(why)};
  return Redial{why.retry_after ? as_asked(*why.retry_after) : redial_after(so_far)};
}

Failure to_failure(const base::Error& error) { return failure(code_of(error.code), error.message); }

}  // namespace wire
