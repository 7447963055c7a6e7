#include "controller/reconcile/patience.h"

#include <algorithm>

#include "libs/api/reasons.h"
#include "libs/base/crypto.h"

namespace controller {
namespace {

using base::ErrorCode;
using Kind = e2b::CreateFailure::Kind;
namespace reason = api::reason;

constexpr base::Milliseconds kHoldMin{1'000}, kHoldMax{60'000};
constexpr base::Milliseconds kQuotaHold{30'000};
constexpr int kDoublingsMax = 6;  // As many reach kHoldMax.

// A refusal that only another spec can help; a bad credential may be replaced without one.
bool refused_for_good(ErrorCode code, std::optional<Kind> kind) {
  return kind == Kind::kRefused && code != ErrorCode::kDenied;
}

std::string_view reason_of(ErrorCode code, std::optional<Kind> kind) {
  if (kind == Kind::kQuota) return reason::kProviderQuotaExceeded;
  if (refused_for_good(code, kind))
    return code == ErrorCode::kNotFound ? reason::kTemplateNotFound : reason::kRejectedByProvider;
  if (code == ErrorCode::kRateLimited) return reason::kRateLimited;
  if (code == ErrorCode::kDenied) return reason::kCredentialsRejected;
  return reason::kProviderUnavailable;
}

base::Milliseconds delay_of(std::optional<Kind> kind, int failures) {
  const auto growing = std::min(kHoldMax, kHoldMin * (1 << std::clamp(failures, 0, kDoublingsMax)));
  return kind == Kind::kQuota ? std::max(kQuotaHold, growing) : growing;
}

}  // namespace

Patience patience_for(const base::Error& error, std::optional<Kind> kind, int failures) {
  Patience patience{.reason = std::string(reason_of(error.code, kind)),
                    .for_good = refused_for_good(error.code, kind)};
  if (!patience.for_good) patience.delay = delay_of(kind, failures);
  if (error.retry_after) patience.delay = std::max(*error.retry_after, base::Milliseconds(1));
  return patience;
}

std::string idempotency_key(const api::Attempt& attempt) {
  return base::to_hex(base::sha256(attempt.nonce + ":" + std::to_string(attempt.number)));
}

}  // namespace controller
