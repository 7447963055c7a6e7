#include "cli/exit_code.h"

#include <csignal>
#include <cstring>

#include "libs/base/json.h"

namespace cli {

int signal_number(std::string_view name) {
  for (int number = 1; number <= SIGRTMAX; ++number)
    if (name == signal_name(number)) return number;
  return 0;
}

std::string signal_name(int number) {
  const char* known = ::sigabbrev_np(number);
  return "SIG" + (known ? std::string(known) : std::to_string(number));
}

int exit_code_of(const wire::ProcessState& state) {
  if (state.signal) {
    const int number = signal_number(*state.signal);
    return number > 0 ? kSignalled + number : kWayLost;
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
