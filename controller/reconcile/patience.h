#pragma once

#include <optional>
#include <string>

#include "libs/api/sandbox.h"
#include "libs/e2b/cloud.h"

namespace controller {

// How a step that failed is borne: the reason that conditions show, and how long the step is held
// back. One that failed for good is not tried again before the spec changes, whatever the delay; a
// standstill is told as such, and tried again all the same.
struct Patience {
  std::string reason;
  base::Milliseconds delay{0};
  bool for_good = false;
  bool standstill = false;
  bool operator==(const Patience&) const = default;
};

// `kind` is given for a create only, and what finds no room is left to the gate; `failures` counts
// those in a row before this one. A delay that the provider names wins over ours, which doubles
// from one second to a minute. A template that is not there may be a provider's slip, or be built
// yet: the third such answer is a standstill, and the delay goes on to five minutes.
Patience patience_for(const base::Error& error, std::optional<e2b::CreateFailure::Kind> kind,
                      int failures);

// hex(sha256(nonce ":" number)): another one after each definite refusal.
std::string idempotency_key(const api::Attempt& attempt);

}  // namespace controller
