#include "local_e2b/faults/faults.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "libs/base/strings.h"

namespace local_e2b {
namespace {

constexpr std::array kKindWords{"latency", "lost-reply", "late-effect"};
constexpr std::int64_t kDelayMsMax = 600'000;

base::Error not_a_fault(std::string_view text, const std::string& why) {
  return base::error(base::ErrorCode::kInvalid, "fault '", text, "': ", why,
                     "; write it as OPERATION:KIND[:p=0..1][:count=N][:ms=N], for example "
                     "create:lost-reply:p=0.1");
}

std::optional<FaultKind> kind_from_word(std::string_view word) {
  for (std::size_t i = 0; i < kKindWords.size(); ++i)
    if (word == kKindWords[i]) return static_cast<FaultKind>(i);
  return std::nullopt;
}

std::optional<double> probability_from(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0.0 && value <= 1.0)) return std::nullopt;
  return value;
}

// Reads one "name=value" into the rule; says what is wrong with it, or nothing.
std::string read_option(const std::string& option, FaultRule& rule) {
  const auto equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (name == "p") {
    const auto probability = probability_from(value);
    if (!probability) return "p is a number from 0 to 1";
    rule.probability = *probability;
    return "";
  }
  const auto number = base::parse_integer(value);
  if (name == "count") {
    if (!number || *number < 1) return "count is a number from 1";
    rule.count = *number;
    return "";
  }
  if (name == "ms") {
    if (!number || *number < 0 || *number > kDelayMsMax) return "ms is a number from 0 to 600000";
    rule.delay = base::Milliseconds(*number);
    return "";
  }
  return "there is no option " + name;
}

}  // namespace

const std::vector<std::string>& fault_operations() {
  static const std::vector<std::string> operations{
      "create", "get", "list", "kill", "pause", "connect", "resume", "timeout", "refresh", "data"};
  return operations;
}

base::Result<FaultRule> parse_fault(std::string_view text) {
  const auto parts = base::split(text, ':');
  if (parts.size() < 2) return not_a_fault(text, "it has no kind");
  FaultRule rule;
  rule.operation = parts[0];
  const auto& known = fault_operations();
  if (rule.operation != "all" &&
      std::find(known.begin(), known.end(), rule.operation) == known.end())
    return not_a_fault(text, "the operations are all, " + base::join(known, ", "));
  const auto kind = kind_from_word(parts[1]);
  if (!kind) return not_a_fault(text, "the kinds are latency, lost-reply and late-effect");
  rule.kind = *kind;
  for (std::size_t i = 2; i < parts.size(); ++i)
    if (const auto wrong = read_option(parts[i], rule); !wrong.empty())
      return not_a_fault(text, wrong);
  if (rule.kind == FaultKind::kLatency && rule.delay.count() == 0)
    return not_a_fault(text, "latency needs ms");
  if (rule.kind == FaultKind::kLateEffect && rule.operation == "data")
    return not_a_fault(text, "data knows latency and lost-reply");
  return rule;
}

base::Json to_json(const FaultRule& rule) {
  base::Json json = {{"operation", rule.operation},
                     {"kind", kKindWords[static_cast<std::size_t>(rule.kind)]},
                     {"p", rule.probability},
                     {"ms", rule.delay.count()}};
  if (rule.count) json["count"] = *rule.count;
  return json;
}

std::string to_text(const Misfortune& misfortune) {
  std::vector<std::string> parts;
  if (misfortune.lost_reply) parts.emplace_back("lost-reply");
  if (misfortune.late_effect) parts.emplace_back("late-effect");
  if (misfortune.delay.count() > 0)
    parts.push_back("delay " + std::to_string(misfortune.delay.count()) + " ms");
  return base::join(parts, ", ");
}

base::Result<base::Done> Faults::set(std::vector<FaultRule> rules) {
  if (rules.size() > kFaultRulesMax)
    return base::error(base::ErrorCode::kInvalid, "at most ", std::to_string(kFaultRulesMax),
                       " faults at once");
  rules_ = std::move(rules);
  return base::Done{};
}

Misfortune Faults::draw(std::string_view operation) {
  Misfortune drawn;
  for (auto& rule : rules_) {
    if (rule.operation != operation && rule.operation != "all") continue;
    if (rule.kind == FaultKind::kLateEffect && operation == "data") continue;
    const double chance = static_cast<double>(random_() >> 11) * 0x1.0p-53;
    if (chance >= rule.probability || rule.count == 0) continue;
    if (rule.count) --*rule.count;
    drawn.delay += rule.delay;
    drawn.lost_reply = drawn.lost_reply || rule.kind == FaultKind::kLostReply;
    drawn.late_effect = drawn.late_effect || rule.kind == FaultKind::kLateEffect;
  }
  return drawn;
}

}  // namespace local_e2b
