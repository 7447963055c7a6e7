#include "cli/inside/execute.h"

#include <array>
#include <csignal>
#include <cstring>
#include <ostream>
#include <utility>

#include "cli/reach/asking.h"
#include "cli/reach/cut_news.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/words.h"
#include "libs/base/signals.h"
#include "libs/wire/client/pump.h"

namespace cli {
namespace {

using wire::Failure;

// What runs, from the wish to its exit code. One that was `joined` goes on without us.
class Execution {
 public:
  Execution(wire::Connection& connection, const Command& command,
            const std::optional<Joined>& joined, const Ends& ends, const Terminal& terminal)
      : connection_(connection),
        session_(connection.session()),
        command_(command),
        joined_(joined),
        ends_(ends),
        terminal_(terminal),
        cut_news_(ends.watched),
        source_(ends.in, session_.new_stream()),
        out_(ends.out, session_.new_stream()),
        err_(ends.err, session_.new_stream()) {}

  int run() {
    open();
    if (!exit_) joined_ ? attach() : spawn();
    while (!exit_) step();
    connection_.finish();
    return *exit_;
  }

 private:
  void open();
  void spawn();
  void attach();
  void wait_for_its_end();
  void step();
  base::Moment next_moment() const;
  void hear(const wire::Answered& answered);
  void hear_joined(const base::Json& answer);
  void hear(const wire::Failed& failed);
  void hear(const wire::StreamUnwanted& unwanted);
  void hear(const wire::Noticed& noticed);
  void hear_signal(int number);
  void leave(int code, const std::string& why = {});
  void pass_on(int number);
  void terminate();
  void watch_limit();
  void watch_outputs();
  void give_up_output(int problem);
  void judge();
  void end(int code, const std::string& why = {});
  void tell(const std::string& what);

  wire::Connection& connection_;
  wire::ClientSession& session_;
  const Command& command_;
  const std::optional<Joined>& joined_;
  const Ends& ends_;
  const Terminal& terminal_;
  CutNews cut_news_;
  std::string handle_;
  wire::Source source_;
  wire::Sink out_, err_;

  std::optional<std::uint32_t> begin_, wait_;
  bool begun_ = false, limit_reached_ = false, output_lost_ = false;
  std::vector<int> signals_;  // That have come.
  base::Moment limit_at_ = base::Moment::max();
  std::optional<wire::ProcessState> state_;  // How it ended.
  std::optional<Failure> wait_failure_;
  std::optional<int> exit_;
};

void Execution::end(int code, const std::string& why) {
  if (exit_) return;
  exit_ = code;
  if (!why.empty()) tell(why);
}

void Execution::tell(const std::string& what) {
  terminal_.err << "sandfleet: " << what << "\n" << std::flush;
}

void Execution::open() {
  if (const auto not_open = open_session(connection_, ends_)) end(not_open->code, not_open->why);
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
  begin_ = ask(session_, args, std::move(how));
  if (!begin_) return end(kNotBegun, "the command is longer than a request may be");
  wait_for_its_end();
}

void Execution::attach() {
  handle_ = joined_->handle;
  wire::AttachArgs args{.handle = handle_};
  wire::Call how{.mutating = true};
  if (joined_->input) {
    args.in = source_.stream();
    how.to_server = {source_.stream()};
  } else {
    source_.stop();
  }
  const auto take = [&](bool there, const wire::Sink& sink, auto& into) {
    if (!there) return;
    into = wire::AttachedOutput{.stream = sink.stream(), .from = 0};
    how.to_client.push_back(sink.stream());
  };
  take(joined_->out, out_, args.out);
  take(joined_->err, err_, args.err);
  begin_ = ask(session_, args, std::move(how));
  wait_for_its_end();
}

void Execution::wait_for_its_end() {
  wait_ = ask(session_, wire::WaitArgs{.handle = handle_, .until = wire::WaitUntil::kSettled});
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
  if (const auto news = cut_news_.look(connection_, terminal_.clock.now())) tell(*news);
  judge();
}

base::Moment Execution::next_moment() const {
  return std::min(limit_at_, cut_news_.next_moment(connection_));
}

// ---- What the sandbox says -------------------------------------------------------------------

void Execution::hear(const wire::Answered& answered) {
  if (answered.id == begin_) {
    begun_ = true;
    if (joined_) return hear_joined(answered.ok);
    if (command_.limit) limit_at_ = terminal_.clock.now() + *command_.limit;
    if (!signals_.empty()) pass_on(signals_.front());
  } else if (answered.id == wait_) {
    auto ok = wire::from_json<wire::WaitArgs::Ok>(answered.ok);
    if (!ok) return end(kWayLost, ok.error().message);
    state_ = std::move(ok->state);
  }
}

void Execution::hear_joined(const base::Json& answer) {
  const auto ok = wire::from_json<wire::AttachArgs::Ok>(answer);
  if (!ok) return leave(kWayLost, ok.error().message);
  const auto tell_of_loss = [this](const std::optional<wire::OutputAt>& output, const char* name) {
    if (output && output->lossy) tell(dropped(output->from, name));
  };
  tell_of_loss(ok->out, "stdout");
  tell_of_loss(ok->err, "stderr");
}

void Execution::hear(const wire::Failed& failed) {
  if (failed.id == begin_ && !signals_.empty()) return end(kSignalled + signals_.front());
  if (failed.id == begin_) return end(exit_code_of(failed.failure), failed.failure.message);
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

// What was joined goes on, and may be joined again.
void Execution::leave(int code, const std::string& why) {
  end(code, (why.empty() ? "" : why + "; ") +
                "it goes on without this; back to it: " + joined_->way_back);
}

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
    if (begun_ && problem && !output_lost_) give_up_output(*problem);
  }
}

void Execution::give_up_output(int problem) {
  const std::string why = std::string("cannot write what it says: ") + std::strerror(problem);
  if (joined_ && problem == EPIPE) return end(kSignalled + SIGPIPE);
  if (joined_) return leave(kNotBegun, why);
  if (problem == EPIPE) return;
  output_lost_ = true;
  tell(why + "; it is being ended");
  terminate();
}

void Execution::judge() {
  if (exit_) return;
  const auto lose_way = [this](const std::string& why) {
    joined_ ? leave(kWayLost, why) : end(kWayLost, why);
  };
  for (const wire::Sink* sink : {&out_, &err_})
    if (sink->failure()) return lose_way("its output broke off: " + sink->failure()->message);
  if (const auto& over = connection_.over()) return lose_way(unknown(over->message));
  if (begun_ && wait_failure_) return end(kWayLost, unknown(wait_failure_->message));
  const bool out_done = out_.done() || (joined_ && !joined_->out);
  const bool err_done = err_.done() || (joined_ && !joined_->err);
  if (!state_ || !out_done || !err_done) return;
  if (output_lost_) return end(kNotBegun);
  end(limit_reached_ ? kLimitReached : exit_code_of(*state_));
}

}  // namespace

int execute(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal) {
  return Execution(connection, command, std::nullopt, ends, terminal).run();
}

int join(wire::Connection& connection, const Joined& joined, const Ends& ends,
         const Terminal& terminal) {
  return Execution(connection, Command{}, joined, ends, terminal).run();
}

}  // namespace cli
