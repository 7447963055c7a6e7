#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/inside/execution.h"
#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "libs/base/signals.h"

// What of an Execution happens here: signals, its limit of time, and whether its outputs can be
// written.
namespace cli {

// The first goes on as it is, as from a terminal. Whoever sends another wants an end, and who sends
// a third will not wait for it: what there is of it ends with the session.
void Execution::hear_signal(int number) {
  if (joined_) return leave(kSignalled + number);
  signals_.push_back(number);
  if (signals_.size() > 2 || (signals_.size() == 2 && !begun_))
    end(kSignalled + number,
        connection_.cut_since() ? "left without a link; it ends with its lease" : "");
  else if (!begun_)
    session_.cancel(*begin_);  // Should it begin all the same, it gets the signal then.
  else if (signals_.size() == 2)
    terminate();
  else
    pass_on(number);
}

void Execution::pass_on(int number) {
  ask(session_, wire::SignalArgs{.handle = handle_, .signal = base::signal_name(number)},
      {.mutating = true});
}

void Execution::terminate() {
  ask(session_, wire::TerminateArgs{.handle = handle_}, {.mutating = true});
}

void Execution::watch_limit() {
  if (terminal_.clock.now() < limit_at_ || state_) return;
  limit_at_ = base::Moment::max();
  limit_reached_ = true;
  tell(terminal_,
       "not over after " + std::to_string(command_.limit->count()) + "s; it is being ended");
  terminate();
}

// That a reader went away the command hears itself; what cannot be written is ours to tell.
void Execution::watch_outputs() {
  for (const wire::Sink* sink : {&out_, &err_}) {
    const auto problem = sink->problem();
    if (begun_ && problem && !output_lost_) give_up_output(*problem);
  }
}

void Execution::give_up_output(int problem) {
  const std::string why = std::string("cannot write what it says: ") + std::strerror(problem);
  if (joined_ && problem == EPIPE) return end(kSignalled + SIGPIPE);
  if (joined_) return leave(kNotBegun, why);
  if (problem == EPIPE) return;
  output_lost_ = true;
  tell(terminal_, why + "; it is being ended");
  terminate();
}

}  // namespace cli
