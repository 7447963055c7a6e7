#include "cli/reach/exit_code.h"

#include "libs/base/json.h"
#include "libs/base/signals.h"

namespace cli {

int exit_code_of(const wire::ProcessState& state) {
  if (state.signal) {
    const auto number = base::signal_number(*state.signal);
    return number ? kSignalled + *number : kWayLost;
  }
  return state.exit_code ? static_cast<int>(*state.exit_code & 0xff) : kWayLost;
}

int exit_code_of(const wire::Failure& refusal) {
  using Code = wire::FailureCode;
  if (refusal.code == Code::kExecutableNotFound) return kNoCommand;
  if (refusal.code == Code::kOutcomeUnknown || refusal.code == Code::kLost) return kWayLost;
  if (refusal.code != Code::kSpawnFailed || !refusal.detail) return kNotBegun;
  if (base::text_at(*refusal.detail, "step") != "exec") return kNotBegun;
  return base::text_at(*refusal.detail, "errno") == "ENOENT" ? kNoCommand : kNotExecutable;
}

}  // namespace cli
