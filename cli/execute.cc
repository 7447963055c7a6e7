#include "cli/execute.h"

#include <array>
#include <csignal>
#include <cstring>
#include <ostream>
#include <utility>

#include "cli/exit_code.h"
#include "cli/held_signals.h"
#include "libs/base/crypto.h"
#include "libs/base/signals.h"
#include "libs/wire/client/pump.h"

namespace cli {
namespace {

using base::ErrorCode;
using wire::Failure;

constexpr base::Seconds kUntoldFor{2};  // Shorter cuts are nobody's business.

// What runs, from the wish to its exit code.
class Execution {
 public:
  Execution(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal)
      : connection_(connection),
        session_(connection.session()),
        command_(command),
        ends_(ends),
        terminal_(terminal),
        source_(ends.in, session_.new_stream()),
        out_(ends.out, session_.new_stream()),
        err_(ends.err, session_.new_stream()) {}

  int run() {
    open();
    if (!exit_) spawn();
    while (!exit_) step();
    connection_.finish();
    return *exit_;
  }

 private:
  void open();
  void spawn();
  void step();
  base::Moment next_moment() const;
  void hear(const wire::Answered& answered);
  void hear(const wire::Failed& failed);
  void hear(const wire::StreamUnwanted& unwanted);
  void hear(const wire::Noticed& noticed);
  void hear_signal(int number);
  void pass_on(int number);
  void terminate();
  void watch_limit();
  void watch_outputs();
  void tell_of_cut();
  void judge();
  void end(int code, const std::string& why = {});
  void tell(const std::string& what);
  template <typename Args>
  std::optional<std::uint32_t> ask(const Args& args, wire::Call how = {});

  wire::Connection& connection_;
  wire::ClientSession& session_;
  const Command& command_;
  const Ends& ends_;
  const Terminal& terminal_;
  std::string handle_;
  wire::Source source_;
  wire::Sink out_, err_;

  std::optional<std::uint32_t> spawn_, wait_;
  bool begun_ = false, limit_reached_ = false, output_lost_ = false, told_of_cut_ = false;
  std::vector<int> signals_;  // That have come.
  base::Moment limit_at_ = base::Moment::max();
  std::optional<wire::ProcessState> state_;  // How it ended.
  std::optional<Failure> wait_failure_;
  std::optional<int> exit_;
};

template <typename Args>
std::optional<std::uint32_t> Execution::ask(const Args& args, wire::Call how) {
  how.op = Args::kOp;
  how.args = wire::to_json(args);
  const auto id = session_.ask(std::move(how));
  return id ? std::optional(*id) : std::nullopt;
}

void Execution::end(int code, const std::string& why) {
  if (exit_) return;
  exit_ = code;
  if (!why.empty()) tell(why);
}

void Execution::tell(const std::string& what) {
  terminal_.err << "sandfleet: " << what << "\n" << std::flush;
}

void Execution::open() {
  const auto welcome = connection_.open({.wake = ends_.signals});
  if (welcome) return;
  const bool signalled = welcome.error().code == wire::FailureCode::kCancelled;
  const auto number = signalled ? next_signal(ends_.signals) : std::nullopt;
  if (number) return end(kSignalled + *number);
  end(kNotBegun, welcome.error().message);
}

void Execution::spawn() {
  wire::SpawnArgs args = to_spawn(command_);
  args.out = wire::Pipe{out_.stream()};
  args.err = wire::Pipe{err_.stream()};
  wire::Call how{.mutating = true,
                 .to_client = {out_.stream(), err_.stream()},
                 .permission_mode = command_.permission_mode};
  if (command_.input) {
    args.in = wire::Pipe{source_.stream()};
    how.to_server = {source_.stream()};
  } else {
    source_.stop();
  }
  handle_ = args.handle;
  spawn_ = ask(args, std::move(how));
  if (!spawn_) return end(kNotBegun, "the command is longer than a request may be");
  wait_ = ask(wire::WaitArgs{.handle = handle_, .until = wire::WaitUntil::kSettled});
}

void Execution::step() {
  std::array<pollfd, 4> set = {pollfd{.fd = ends_.signals, .events = POLLIN, .revents = 0},
                               source_.wants(session_), out_.wants(session_), err_.wants(session_)};
  connection_.turn(set, next_moment());
  if (set[0].revents != 0)
    if (const auto number = next_signal(ends_.signals)) hear_signal(*number);
  source_.work(session_, set[1].revents);
  out_.work(session_, set[2].revents);
  err_.work(session_, set[3].revents);
  for (const wire::ConnectionEvent& event : connection_.take_events())
    std::visit([this](const auto& each) { hear(each); }, event);
  watch_outputs();
  watch_limit();
  tell_of_cut();
  judge();
}

base::Moment Execution::next_moment() const {
  const auto cut = connection_.cut_since();
  const bool to_tell = cut && ends_.watched && !told_of_cut_;
  return std::min(limit_at_, to_tell ? *cut + kUntoldFor : base::Moment::max());
}

// ---- What the sandbox says -------------------------------------------------------------------

void Execution::hear(const wire::Answered& answered) {
  if (answered.id == spawn_) {
    begun_ = true;
    if (command_.limit) limit_at_ = terminal_.clock.now() + *command_.limit;
    if (!signals_.empty()) pass_on(signals_.front());
  } else if (answered.id == wait_) {
    auto ok = wire::from_json<wire::WaitArgs::Ok>(answered.ok);
    if (!ok) return end(kWayLost, ok.error().message);
    state_ = std::move(ok->state);
  }
}

void Execution::hear(const wire::Failed& failed) {
  if (failed.id == spawn_ && !signals_.empty()) return end(kSignalled + signals_.front());
  if (failed.id == spawn_) return end(exit_code_of(failed.failure), failed.failure.message);
  if (failed.id == wait_) wait_failure_ = failed.failure;
}

void Execution::hear(const wire::StreamUnwanted& unwanted) {
  if (unwanted.stream == source_.stream()) source_.stop();
}

void Execution::hear(const wire::Noticed& noticed) {
  tell(noticed.notice.kind + ": " + noticed.notice.message);
}

// ---- What happens here -----------------------------------------------------------------------

// The first goes on as it is, as from a terminal. Whoever sends another wants an end, and who sends
// a third will not wait for it: what there is of it ends with the session.
void Execution::hear_signal(int number) {
  signals_.push_back(number);
  if (signals_.size() > 2 || (signals_.size() == 2 && !begun_))
    end(kSignalled + number,
        connection_.cut_since() ? "left without a link; it ends with its lease" : "");
  else if (!begun_)
    session_.cancel(*spawn_);  // Should it begin all the same, it gets the signal then.
  else if (signals_.size() == 2)
    terminate();
  else
    pass_on(number);
}

void Execution::pass_on(int number) {
  ask(wire::SignalArgs{.handle = handle_, .signal = base::signal_name(number)}, {.mutating = true});
}

void Execution::terminate() { ask(wire::TerminateArgs{.handle = handle_}, {.mutating = true}); }

void Execution::watch_limit() {
  if (terminal_.clock.now() < limit_at_ || state_) return;
  limit_at_ = base::Moment::max();
  limit_reached_ = true;
  tell("not over after " + std::to_string(command_.limit->count()) + "s; it is being ended");
  terminate();
}

// That a reader went away the command hears itself; what cannot be written is ours to tell.
void Execution::watch_outputs() {
  for (const wire::Sink* sink : {&out_, &err_}) {
    const auto problem = sink->problem();
    if (!begun_ || !problem || *problem == EPIPE || std::exchange(output_lost_, true)) continue;
    tell(std::string("cannot write what it says: ") + std::strerror(*problem) +
         "; it is being ended");
    terminate();
  }
}

void Execution::tell_of_cut() {
  const auto cut = connection_.cut_since();
  if (!ends_.watched || cut.has_value() == told_of_cut_) return;
  if (cut && terminal_.clock.now() < *cut + kUntoldFor) return;
  told_of_cut_ = cut.has_value();
  tell(cut ? "no link to the sandbox; it goes on when there is one" : "there is a link again");
}

void Execution::judge() {
  if (exit_) return;
  for (const wire::Sink* sink : {&out_, &err_})
    if (sink->failure()) return end(kWayLost, "its output broke off: " + sink->failure()->message);
  for (const auto& lost : {connection_.over(), begun_ ? wait_failure_ : std::nullopt})
    if (lost) return end(kWayLost, "what became of it is not known: " + lost->message);
  if (!state_ || !out_.done() || !err_.done()) return;
  if (output_lost_) return end(kNotBegun);
  end(limit_reached_ ? kLimitReached : exit_code_of(*state_));
}

base::Result<wire::EnvironmentChange> read_variable(const std::string& text) {
  const auto equals = text.find('=');
  if (text.empty() || equals == 0)
    return base::error(ErrorCode::kInvalid, "--env \"", text,
                       "\": write NAME=VALUE, or NAME to remove");
  if (equals == std::string::npos) return wire::EnvironmentChange(text, std::nullopt);
  return wire::EnvironmentChange(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace

base::Result<Command> read_command(const Options& options) {
  if (options.command.empty() || options.command[0].empty())
    return base::error(ErrorCode::kInvalid, "which command? ", options.program,
                       " exec [SANDBOX] -- COMMAND..., or exec SANDBOX COMMAND...");
  if (options.detach && (options.input || options.limit_seconds > 0))
    return base::error(
        ErrorCode::kInvalid,
        "--detach leaves it alone: --stdin and --timeout are for what is waited for");
  Command command{.argv = options.command,
                  .grace = base::Seconds(options.grace_seconds),
                  .input = options.input};
  if (!options.folder.empty()) command.folder = options.folder;
  if (options.limit_seconds > 0) command.limit = base::Seconds(options.limit_seconds);
  if (!options.permission_mode.empty())
    command.permission_mode = wire::ceiling_of(options.permission_mode);
  for (const std::string& variable : options.variables) {
    TRY(auto change, read_variable(variable));
    command.env.push_back(std::move(change));
  }
  return command;
}

wire::SpawnArgs to_spawn(const Command& command) {
  return {.handle = base::random_hex(16),
          .argv = command.argv,
          .cwd = command.folder,
          .env = command.env,
          .grace_ms = base::Milliseconds(command.grace).count()};
}

int execute(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal) {
  return Execution(connection, command, ends, terminal).run();
}

}  // namespace cli
