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
constexpr base::Milliseconds kTemplateHoldMax{300'000};
constexpr int kDoublingsMax = 9;   // As many reach every maximum.
constexpr int kTemplateTries = 2;  // Before its absence is believed.

bool is_without_template(ErrorCode code, std::optional<Kind> kind) {
  return kind == Kind::kRefused && code == ErrorCode::kNotFound;
}

// A refusal that only another spec can help; a bad credential may be replaced without one.
bool refused_for_good(ErrorCode code, std::optional<Kind> kind) {
  return kind == Kind::kRefused && code != ErrorCode::kDenied && code != ErrorCode::kNotFound;
}

std::string_view reason_of(ErrorCode code, std::optional<Kind> kind) {
  if (is_without_template(code, kind)) return reason::kTemplateNotFound;
  if (refused_for_good(code, kind)) return reason::kRejectedByProvider;
  if (code == ErrorCode::kRateLimited) return reason::kRateLimited;
  if (code == ErrorCode::kDenied) return reason::kCredentialsRejected;
  return reason::kProviderUnavailable;
}

base::Milliseconds delay_of(ErrorCode code, std::optional<Kind> kind, int failures) {
  const auto most = is_without_template(code, kind) ? kTemplateHoldMax : kHoldMax;
  return std::min(most, kHoldMin * (1 << std::clamp(failures, 0, kDoublingsMax)));
}

}  // namespace

Patience patience_for(const base::Error& error, std::optional<Kind> kind, int failures) {
  Patience patience{.reason = std::string(reason_of(error.code, kind)),
                    .for_good = refused_for_good(error.code, kind)};
  patience.standstill =
      patience.for_good || (is_without_template(error.code, kind) && failures >= kTemplateTries);
  if (!patience.for_good) patience.delay = delay_of(error.code, kind, failures);
  if (error.retry_after) patience.delay = std::max(*error.retry_after, base::Milliseconds(1));
  return patience;
}

std::string idempotency_key(const api::Attempt& attempt) {
  return base::to_hex(base::sha256(attempt.nonce + ":" + std::to_string(attempt.number)));
}

}  // namespace controller
