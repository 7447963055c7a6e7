#pragma once

#include <string>
#include <variant>

#include "libs/api/sandbox.h"
#include "libs/base/clock.h"

namespace controller {

// Why an attach token is not given; the words are the wire's `reason`.
enum class NoEntry {
  kInvalid,
  kDenied,
  kNotFound,
  kPaused,    // Or about to be; somebody must resume it.
  kEnded,     // Or about to be; for good.
  kNotReady,  // Ask again.
  kRateLimited,
  kUnavailable,
};
std::string_view to_word(NoEntry reason);
int http_status_of(NoEntry reason);

struct Refused {
  NoEntry reason;
  std::string message;
  std::optional<base::Milliseconds> retry_after = {};
  bool operator==(const Refused&) const = default;
};

struct Admitted {
  bool operator==(const Admitted&) const = default;
};

// Whether a Sandbox can be attached to as it stands; pure. Between the begin of a pause and the end
// of a resume it cannot: a token is good for one run, and that run is not on record yet.
std::variant<Admitted, Refused> judge(const api::Sandbox* sandbox, const api::Key& asked);

}  // namespace controller
