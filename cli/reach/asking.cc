#include "cli/reach/asking.h"

#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"

namespace cli {

std::optional<NotOpen> open_session(wire::Connection& connection, const Ends& ends) {
  const auto welcome = connection.open({.wake = ends.signals});
  if (welcome) return std::nullopt;
  const bool signalled = welcome.error().code == wire::FailureCode::kCancelled;
  const auto number = signalled ? next_signal(ends.signals) : std::nullopt;
  if (number) return NotOpen{kSignalled + *number};
  return NotOpen{kNotBegun, welcome.error().message};
}

base::Result<wire::ProcessState, wire::Failure> look_at(wire::Connection& connection,
                                                        const std::string& handle, const Ends& ends,
                                                        const Terminal& terminal) {
  const auto looked =
      connection.ask(wire::WaitArgs{.handle = handle, .timeout_ms = 0}, {},
                     {.moment = terminal.clock.now() + kAnswerWithin, .wake = ends.signals});
  if (!looked) return looked.error();
  return looked->state;
}

}  // namespace cli
