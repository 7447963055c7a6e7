#include "cli/inside/processes.h"

#include <ostream>

#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/way.h"
#include "libs/base/strings.h"

namespace cli {
namespace {

using base::Result;
using wire::Failure;

constexpr std::size_t kCommandBytesMax = 100;  // Of a table's row.

// As many pages as it takes: each brings somebody, and an executor has no end of time.
Result<std::vector<wire::ListedProcess>, Failure> all_processes(wire::Connection& connection,
                                                                wire::Until until) {
  std::vector<wire::ListedProcess> all;
  wire::ListProcessesArgs args;
  for (;;) {
    TRY(auto page, connection.ask(args, {}, until));
    const bool goes_on = page.more && !page.processes.empty();
    for (wire::ListedProcess& each : page.processes) all.push_back(std::move(each));
    if (!goes_on && page.more)
      return wire::failure(wire::FailureCode::kInternal, "the list of processes does not go on");
    if (!goes_on) return all;
    args.after = all.back().handle;
  }
}

std::string age_of(const wire::ProcessState& state, base::WallTime now) {
  return state.age_ms ? age(now - base::Milliseconds(*state.age_ms), now) : "-";
}

// Terminals by their size.
std::string terminal_word(const wire::ProcessState& state) {
  if (!state.terminal) return "-";
  return std::to_string(state.terminal->columns) + "x" + std::to_string(state.terminal->rows);
}

std::string command_of(const wire::ListedProcess& process) {
  const std::string whole = base::join(process.argv, " ");
  const auto shown = base::cut(whole, kCommandBytesMax);
  return std::string(shown) + (shown.size() < whole.size() ? "..." : "");
}

int send_signal(wire::Connection& connection, const std::string& handle, const Options& options,
                const Terminal& terminal, wire::Until until) {
  using To = wire::SignalArgs::To;
  const auto sent = connection.ask(
      wire::SignalArgs{
          .handle = handle, .signal = options.signal, .to = options.tree ? To::kTree : To::kGroup},
      {.mutating = true}, until);
  if (!sent) return fail(to_error(sent.error()), terminal.err);
  if (!sent->delivered)
    return fail(base::error(base::ErrorCode::kNotFound, "nobody is left of ", handle),
                terminal.err);
  terminal.out << "process/" << handle << " signalled: " << options.signal << "\n" << std::flush;
  return kDone;
}

int terminate(wire::Connection& connection, const std::string& handle, const Options& options,
              const Terminal& terminal, wire::Until until) {
  const auto asked = connection.ask(
      wire::TerminateArgs{.handle = handle, .grace_ms = options.grace_seconds * 1000},
      {.mutating = true}, until);
  if (!asked) return fail(to_error(asked.error()), terminal.err);
  const auto ended =
      connection.ask(wire::WaitArgs{.handle = handle,
                                    .until = wire::WaitUntil::kEmpty,
                                    .timeout_ms = options.timeout_seconds * 1000},
                     {}, {.moment = until.moment + base::Seconds(options.timeout_seconds)});
  // A handle is forgotten when nothing is left of it: whose session it was in may have ended first.
  if (!ended && ended.error().code == wire::FailureCode::kNotFound) {
    terminal.out << "process/" << handle << " ended\n" << std::flush;
    return kDone;
  }
  if (!ended) return fail(to_error(ended.error()), terminal.err);
  if (!ended->reached) {
    terminal.err << "sandfleet: process/" << handle << ": some of it are left after "
                 << options.timeout_seconds << "s\n";
    return kTimedOut;
  }
  terminal.out << "process/" << handle << " ended: " << state_word(ended->state) << "\n"
               << std::flush;
  return kDone;
}

}  // namespace

std::string state_word(const wire::ProcessState& state) {
  if (state.pid < 0) return "NotStarted";
  if (!state.exited) return "Running";
  std::string word = state.signal ? "Killed(" + *state.signal + ")"
                                  : "Exited(" + std::to_string(state.exit_code.value_or(-1)) + ")";
  return state.empty ? word : word + ", some left";
}

Table process_table(const std::vector<wire::ListedProcess>& processes, base::WallTime now) {
  Table table{{"HANDLE", "PID", "STATE", "AGE", "TERMINAL", "DETACHED", "COMMAND"}};
  for (const wire::ListedProcess& each : processes)
    table.rows.push_back({each.handle, each.state.pid < 0 ? "-" : std::to_string(each.state.pid),
                          state_word(each.state), age_of(each.state, now),
                          terminal_word(each.state), each.state.detached ? "yes" : "-",
                          command_of(each)});
  return table;
}

int list_processes(wire::Connection& connection, const Options& options, const Terminal& terminal) {
  const auto all = all_processes(connection, {.moment = terminal.clock.now() + kAnswerWithin});
  if (!all) return fail(to_error(all.error()), terminal.err);
  if (options.output != "json") {
    terminal.out << to_text(process_table(*all, terminal.clock.wall()));
    return kDone;
  }
  base::Json items = base::Json::array();
  for (const wire::ListedProcess& each : *all) items.push_back(wire::to_json(each));
  terminal.out << base::to_text({{"processes", std::move(items)}}, 2) << "\n";
  return kDone;
}

int end_process(wire::Connection& connection, const Options& options, const Terminal& terminal) {
  const wire::Until until{.moment = terminal.clock.now() + kAnswerWithin};
  const std::string& handle = options.words.back();
  return options.signal.empty() ? terminate(connection, handle, options, terminal, until)
                                : send_signal(connection, handle, options, terminal, until);
}

}  // namespace cli
