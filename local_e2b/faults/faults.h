#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

// Faults that a test asks for: what a network and a provider do on a bad day, by operation, drawn
// from a seed so that a run can be repeated.
namespace local_e2b {

enum class FaultKind {
  kLatency,     // The answer takes `delay` longer.
  kLostReply,   // The effect happens; the connection closes without an answer.
  kLateEffect,  // The connection closes at once; the effect happens `delay` later.
};

struct FaultRule {
  std::string operation;  // A word of fault_operations(), or "all".
  FaultKind kind = FaultKind::kLatency;
  double probability = 1.0;
  std::optional<std::int64_t> count = std::nullopt;  // How many times more.
  base::Milliseconds delay{0};
};

const std::vector<std::string>& fault_operations();
// "create:lost-reply:p=0.1", "pause:latency:ms=800:count=3": operation, kind, then p=, count=, ms=.
base::Result<FaultRule> parse_fault(std::string_view text);
base::Json to_json(const FaultRule& rule);

// What happens to one request.
struct Misfortune {
  base::Milliseconds delay{0};
  bool lost_reply = false;
  bool late_effect = false;
  bool none() const { return delay.count() == 0 && !lost_reply && !late_effect; }
};
std::string to_text(const Misfortune& misfortune);  // For logs; empty when nothing happens.

inline constexpr std::size_t kFaultRulesMax = 64;

class Faults {
 public:
  explicit Faults(std::uint64_t seed) : random_(seed) {}
  base::Result<base::Done> set(std::vector<FaultRule> rules);  // In place of those before.
  const std::vector<FaultRule>& rules() const { return rules_; }
  // Draws once for every rule of the operation, whether or not it is used up.
  Misfortune draw(std::string_view operation);

 private:
  std::mt19937_64 random_;
  std::vector<FaultRule> rules_;
};

}  // namespace local_e2b
