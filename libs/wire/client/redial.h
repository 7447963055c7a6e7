#pragma once

#include <optional>
#include <variant>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/frames/message.h"

// What a client does without a link: docs/protocol.md, "Closing". Pure.
namespace wire {

inline constexpr base::Milliseconds kRedialFirst{50}, kRedialMost{3'000};
inline constexpr base::Milliseconds kQuiescedFor{1'000};  // Less is not worth a dial.
inline constexpr base::Milliseconds kBusyMost{60'000};    // Of what a server may ask for.
inline constexpr base::Milliseconds kSteady{1'000};       // A link that held so long counts.

struct Redialling {
  int tries = 0;          // In a row, since a link held.
  bool welcomed = false;  // Once.
  bool denied = false;    // The last link was, too.
  double chance = 0;      // 0 to 1: who was cut off together need not come back together.
};

struct Redial {
  base::Milliseconds after{};
  // Why this session has ended, with all that was asked in it: another one is begun.
  std::optional<Failure> anew = std::nullopt;
  bool operator==(const Redial&) const = default;
};
struct GiveUp {
  Failure why;
  bool operator==(const GiveUp&) const = default;
};
using AfterLink = std::variant<Redial, GiveUp>;

// Each try waits twice as long as the one before, less up to half by chance.
base::Milliseconds redial_after(const Redialling& so_far);
AfterLink after_close(const Close& close, const Redialling& so_far);
// Where there was no credential to dial with: a refusal stands, all else may pass. Before the first
// welcome nobody waits for one that is not there.
AfterLink without_credential(const base::Error& why, const Redialling& so_far);

// When to bring the next credential, where the one at hand is good for `left`: not again and again
// at once where the next is the same, or clocks differ.
inline constexpr base::Milliseconds kRenewLeast{5'000};
base::Milliseconds renew_after(base::Milliseconds left);

// What this side could not do, as a failure of what was asked.
Failure to_failure(const base::Error& error);

}  // namespace wire
