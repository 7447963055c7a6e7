#include "cli/inside/inside.h"

#include <ostream>

#include "cli/copy/copy.h"
#include "cli/copy/copying.h"
#include "cli/inside/attach.h"
#include "cli/inside/execute.h"
#include "cli/inside/processes.h"
#include "cli/logs/logs.h"
#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/way.h"
#include "cli/reach/words.h"
#include "libs/base/signals.h"

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;

// Of each output of what nobody reads: its end, and all of it in a file while it is not longer.
constexpr std::int64_t kTailBytes = 256 << 10, kSpillBytes = 64 << 20;

std::vector<std::string> features_of(const Verb& verb) {
  if (verb.copies) return {"archives"};
  if (verb.opens || verb.joins) return {"processes", "terminals"};
  if (verb.reads) return {"processes", "files"};
  return {"processes"};
}

// The sandbox's name among the words; empty: there is none.
Result<std::string> named_in(const Verb& verb, const Options& options) {
  const auto& words = options.words;
  if (verb.copies) {
    TRY(const Copying what, read_copying(options));
    return what.inside().sandbox;
  }
  const std::size_t others = verb.names_handle() ? 1 : 0;
  if (words.size() < others)
    return base::error(ErrorCode::kInvalid, verb.name, " needs a handle; '", options.program,
                       " ps' lists them");
  if (words.size() > others + 1)
    return base::error(ErrorCode::kInvalid, "too many words: \"", words.back(), "\"");
  return words.size() > others ? words[0] : "";
}

Result<base::Done> judge_signal(const Options& options) {
  if (options.tree && options.signal.empty())
    return base::error(ErrorCode::kInvalid,
                       "--tree is for --signal; without it all of the tree is ended");
  if (!options.signal.empty() && !base::signal_number(options.signal))
    return base::error(ErrorCode::kInvalid, "--signal ", options.signal,
                       ": there is no such signal; write it as SIGHUP");
  return base::Done{};
}

// What nobody can name any more must not go on.
int end_unnamed(wire::Connection& connection, const std::string& handle, const Terminal& terminal) {
  constexpr auto kWhy = "sandfleet: cannot write to standard output";
  const auto ended = connection.ask(wire::TerminateArgs{.handle = handle}, {.mutating = true},
                                    {.moment = terminal.clock.now() + kAnswerWithin});
  if (ended || ended.error().code == wire::FailureCode::kNotFound) {
    terminal.err << kWhy << ", and it was ended\n";
    return kNotBegun;
  }
  terminal.err << kWhy << "; " << unknown(ended.error().message) << "; its handle is " << handle
               << "\n";
  return kWayLost;
}

int detach(const Options& options, const Command& command, wire::Connection& connection,
           const Terminal& terminal) {
  wire::SpawnArgs args = to_spawn(command);
  args.detached = true;
  args.out = args.err = wire::Collected{kTailBytes, kSpillBytes};
  const auto begun =
      connection.ask(args, {.mutating = true, .permission_mode = command.permission_mode});
  if (!begun) {
    connection.finish();
    terminal.err << "sandfleet: " << begun.error().message << "\n";
    return exit_code_of(begun.error());
  }
  if (options.begun_as == "json")
    terminal.out << base::to_text({{"handle", args.handle}, {"pid", begun->pid}}, 2) << "\n";
  else
    terminal.out << args.handle << "\n";
  terminal.out << std::flush;
  const int code = terminal.out ? kDone : end_unnamed(connection, args.handle, terminal);
  connection.finish();
  return code;
}

}  // namespace

Result<wire::ConnectionSettings> connection_for(const Verb& verb, const Options& options,
                                                const Surroundings& around,
                                                const FindToken& find_token) {
  TRY(const auto named, named_in(verb, options));
  TRY(const auto way, choose_way(options, named, around));
  wire::ConnectionSettings settings{
      .socket = way.socket,
      .session = {.name = "sandfleet", .features = features_of(verb), .sandbox = way.sandbox},
      .credential = credential_from(way.token_file)};
  if (way.service_account.empty()) return settings;
  settings.credential = [way, find_token]() -> Result<wire::Credential> {
    TRY(auto token, find_token(way.sandbox, way.service_account));
    return wire::Credential(std::optional<std::string>(std::move(token)));
  };
  return settings;
}

int run_inside(const Verb& verb, const Options& options, wire::Connection& connection,
               const Ends& ends, const Terminal& terminal) {
  if (verb.runs) {
    const auto command = read_command(options);
    if (!command) return refuse(verb, options, command.error(), terminal.err);
    return options.detach ? detach(options, *command, connection, terminal)
                          : execute(connection, *command, ends, terminal);
  }
  if (verb.copies) return copy(connection, options, ends, terminal);
  if (verb.opens) return open_shell(verb, options, connection, ends, terminal);
  if (verb.joins) return attach(verb, options, connection, ends, terminal);
  if (verb.reads) return show_logs(connection, options, ends, terminal);
  if (const auto judged = judge_signal(options); !judged)
    return refuse(verb, options, judged.error(), terminal.err);
  const int code = verb.kills ? end_process(connection, options, terminal)
                              : list_processes(connection, options, terminal);
  connection.finish();
  return code;
}

}  // namespace cli
