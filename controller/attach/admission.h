#pragma once

#include <string>
#include <variant>

#include "libs/api/sandbox.h"
#include "libs/base/clock.h"
#include "libs/wire/attach.h"

namespace controller {

using wire::NoEntry;
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
// It is paused because it idled, and is to be woken for whoever may attach; what he is told
// meanwhile.
struct Wakes {
  Refused meanwhile;
  bool operator==(const Wakes&) const = default;
};
using Verdict = std::variant<Admitted, Wakes, Refused>;

// Whether a Sandbox can be attached to as it stands; pure. Between the begin of a pause and the end
// of a resume it cannot: a token is good for one run, and that run is not on record yet.
Verdict judge(const api::Sandbox* sandbox, const api::Key& asked);

}  // namespace controller
