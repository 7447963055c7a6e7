#include "cli/asking.h"

#include "cli/exit_code.h"
#include "cli/held_signals.h"

namespace cli {

std::optional<NotOpen> open_session(wire::Connection& connection, const Ends& ends) {
  const auto welcome = connection.open({.wake = ends.signals});
  if (welcome) return std::nullopt;
  const bool signalled = welcome.error().code == wire::FailureCode::kCancelled;
  const auto number = signalled ? next_signal(ends.signals) : std::nullopt;
  if (number) return NotOpen{kSignalled + *number};
  return NotOpen{kNotBegun, welcome.error().message};
}

}  // namespace cli
