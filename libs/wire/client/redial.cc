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

base::Milliseconds as_asked(const Close& close, base::Milliseconds otherwise) {
  if (!close.retry_after_ms) return otherwise;
  return std::clamp(base::Milliseconds(*close.retry_after_ms), kRedialFirst, kBusyMost);
}

}  // namespace

base::Milliseconds redial_after(const Redialling& so_far) {
  return base::BackOff{kRedialFirst, kRedialMost}.after(so_far.tries + 1, so_far.chance);
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

}  // namespace wire
