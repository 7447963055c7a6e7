#include "cli/inside/attach.h"

#include <ostream>

#include "cli/inside/execute.h"
#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/way_back.h"
#include "cli/terminal/local_terminal.h"
#include "cli/terminal/shell.h"
#include "libs/base/crypto.h"

namespace cli {
namespace {

using base::ErrorCode;

base::Result<Seat> seat_for(const wire::Connection& connection, const Options& options,
                            const std::string& handle) {
  const auto escapes = escapes_of(options.escape_char);
  if (!escapes)
    return base::error(ErrorCode::kInvalid, "--escape-char \"", options.escape_char,
                       "\": write one character, ^X, or none");
  return Seat{handle, way_back(options, *connection.settings().session.sandbox, handle), *escapes,
              options.escape_char};
}

int refuse_to_begin(const std::string& why, const Terminal& terminal) {
  terminal.err << "sandfleet: " << why << "\n" << std::flush;
  return kNotBegun;
}

int attach_to(const wire::ProcessState& state, const Verb& verb, const Options& options,
              wire::Connection& connection, const Ends& ends, const Terminal& terminal) {
  const std::string& handle = options.words.back();
  if (!state.detached)
    return refuse_to_begin(
        "process/" + handle +
            " belongs to a session that is there, from which attaching would take its output; '" +
            options.program + " logs' looks without taking",
        terminal);
  if (!state.terminal)
    return join(connection,
                {.handle = handle,
                 .out = state.out.has_value(),
                 .err = state.err.has_value(),
                 .input = options.input,
                 .way_back = way_back(options, *connection.settings().session.sandbox, handle)},
                ends, terminal);
  if (!LocalTerminal(ends.in).is_one())
    return refuse_to_begin("process/" + handle + " has a terminal, and standard input is none; '" +
                               options.program + " logs' shows what it has shown",
                           terminal);
  const auto seat = seat_for(connection, options, handle);
  if (!seat) return refuse(verb, options, seat.error(), terminal.err);
  return attach_terminal(connection, *seat, ends, terminal);
}

}  // namespace

int open_shell(const Verb& verb, const Options& options, wire::Connection& connection,
               const Ends& ends, const Terminal& terminal) {
  const auto command = read_shell(options);
  if (!command) return refuse(verb, options, command.error(), terminal.err);
  const auto seat = seat_for(connection, options, base::random_hex(16));
  if (!seat) return refuse(verb, options, seat.error(), terminal.err);
  if (!LocalTerminal(ends.in).is_one())
    return refuse_to_begin(
        "standard input is no terminal; '" + options.program + " exec -i' runs a command with it",
        terminal);
  return open_terminal(connection, *command, *seat, ends, terminal);
}

int attach(const Verb& verb, const Options& options, wire::Connection& connection, const Ends& ends,
           const Terminal& terminal) {
  const std::string& handle = options.words.back();
  const auto state = look_at(connection, handle, ends, terminal);
  int code = kNotBegun;
  if (state)
    code = attach_to(*state, verb, options, connection, ends, terminal);
  else if (const auto number = next_signal(ends.signals))
    code = kSignalled + *number;
  else
    code = refuse_to_begin("process/" + handle + ": " + state.error().message, terminal);
  connection.finish();
  return code;
}

}  // namespace cli
