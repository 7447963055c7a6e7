#include "cli/inside/execution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/words.h"

namespace cli {

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
  if (const auto news = cut_news_.look(connection_, terminal_.clock.now())) tell(terminal_, *news);
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
    if (output && output->lossy) tell(terminal_, dropped(output->from, name));
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
  tell(terminal_, noticed.notice.kind + ": " + noticed.notice.message);
}

// ---- The end ---------------------------------------------------------------------------------

void Execution::judge() {
  if (exit_) return;
  const auto lose_way = [this](const std::string& why) {
    joined_ ? leave(kWayLost, why) : end(kWayLost, why);
  };
  for (const wire::Sink* sink : {&out_, &err_})
    if (sink->failure()) return lose_way("its output broke off: " + sink->failure()->message);
  if (const auto& over = connection_.over()) {
    const bool may_return = over->code != wire::FailureCode::kDenied;
    return may_return ? lose_way(unknown(over->message)) : end(kWayLost, unknown(over->message));
  }
  if (begun_ && wait_failure_) return end(kWayLost, unknown(wait_failure_->message));
  const bool out_done = out_.done() || (joined_ && !joined_->out);
  const bool err_done = err_.done() || (joined_ && !joined_->err);
  if (!state_ || !out_done || !err_done) return;
  if (output_lost_) return end(kNotBegun);
  end(limit_reached_ ? kLimitReached : exit_code_of(*state_));
}

void Execution::end(int code, const std::string& why) {
  if (exit_) return;
  exit_ = code;
  if (!why.empty()) tell(terminal_, why);
}

// What was joined goes on, and may be joined again.
void Execution::leave(int code, const std::string& why) {
  end(code, (why.empty() ? "" : why + "; ") +
                "it goes on without this; back to it: " + joined_->way_back);
}

}  // namespace cli
