#include "cli/terminal/sitting.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ostream>

#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/words.h"

namespace cli {
namespace {

using wire::Failure;
using wire::FailureCode;

// Of what a terminal has shown, kept for who comes back.
constexpr std::int64_t kKeptBytes = 1 << 20;
constexpr base::Seconds kLastWordWithin{5};
constexpr pollfd kNothing{.fd = -1, .events = 0, .revents = 0};

}  // namespace

Sitting::Sitting(wire::Connection& connection, const Seat& seat, const Ends& ends,
                 const Terminal& terminal)
    : connection_(connection),
      session_(connection.session()),
      seat_(seat),
      escapes_(seat.escapes),
      ends_(ends),
      terminal_(terminal),
      local_(ends.in) {
  hold_terminal_signals(ends.signals);
}

// ---- Beginning -------------------------------------------------------------------------------

void Sitting::open() {
  if (const auto not_open = open_session(connection_, ends_)) end(not_open->code, not_open->why);
}

wire::Sink Sitting::new_sink() {
  return {ends_.out, session_.new_stream(),
          [this](const wire::Piece& piece) { return show(piece); }};
}

void Sitting::spawn(const Command& command) {
  if (exit_) return;
  wire::SpawnArgs args = to_spawn(command);
  args.handle = seat_.handle;
  args.detached = true;
  args.terminal = local_.size();
  if (const char* name = std::getenv("TERM"); name && *name != '\0')
    args.env.insert(args.env.begin(), {"TERM", name});
  typed_ = session_.new_stream();
  sink_.emplace(new_sink());
  args.in = wire::Pipe{typed_};
  args.out = wire::Collected{.bytes_max = kKeptBytes, .stream = sink_->stream()};
  spawn_ = ask(session_, args,
               {.mutating = true,
                .to_client = {sink_->stream()},
                .to_server = {typed_},
                .permission_mode = command.permission_mode});
  if (!spawn_) return end(kNotBegun, "the command is longer than a request may be");
  wait_for_its_end();
}

void Sitting::attach(std::int64_t from) {
  if (exit_) return;
  begun_ = unread_ = false;
  typed_ = session_.new_stream();
  sink_.emplace(new_sink());
  attach_ = ask(
      session_,
      wire::AttachArgs{
          .handle = seat_.handle, .in = typed_, .out = wire::AttachedOutput{sink_->stream(), from}},
      {.mutating = true, .to_client = {sink_->stream()}, .to_server = {typed_}});
  if (!wait_) wait_for_its_end();
}

void Sitting::wait_for_its_end() {
  wait_ = ask(session_, wire::WaitArgs{.handle = seat_.handle, .until = wire::WaitUntil::kSettled});
}

void Sitting::begin() {
  begun_ = true;
  local_.take();
}

// ---- What the sandbox says -------------------------------------------------------------------

void Sitting::hear(const wire::Answered& answered) {
  if (answered.id == spawn_) {
    if (signalled_ == 0) return begin();
    // It was to begin no more, and nobody would know of it.
    static_cast<void>(connection_.ask(wire::TerminateArgs{.handle = seat_.handle},
                                      {.mutating = true},
                                      {.moment = terminal_.clock.now() + kLastWordWithin}));
    end(kSignalled + signalled_);
  } else if (answered.id == attach_) {
    hear_attached(answered.ok);
  } else if (answered.id == wait_) {
    auto ok = wire::from_json<wire::WaitArgs::Ok>(answered.ok);
    if (!ok) return end(kWayLost, ok.error().message);
    state_ = std::move(ok->state);
  } else if (answered.id == resize_) {
    resize_.reset();
  } else if (answered.id == look_) {
    look_.reset();
  }
}

void Sitting::hear_attached(const base::Json& answer) {
  const auto ok = wire::from_json<wire::AttachArgs::Ok>(answer);
  if (!ok || !ok->out) return end(kWayLost, ok ? "it shows nothing" : ok.error().message);
  const bool came_back = at_ > 0;
  stream_begin_ = ok->out->from;
  if (!came_back && ok->state.out) seen_before_ = ok->state.out->bytes;
  begun_ = true;
  if (!wait_) wait_for_its_end();
  if (ok->state.exited) return;  // What it showed last is all there is.
  begin();
  if (ok->out->lossy)
    repaint();
  else if (ok->state.terminal != local_.size())
    sizes_ = {local_.size()};
}

void Sitting::hear(const wire::Failed& failed) {
  const Failure& why = failed.failure;
  if (failed.id == spawn_) {
    if (signalled_ != 0) return end(kSignalled + signalled_);
    // It may have begun in a session that was lost meanwhile.
    if (why.code == FailureCode::kOutcomeUnknown) return attach(0);
    end(exit_code_of(why), why.message);
  } else if (failed.id == attach_) {
    if (why.code == FailureCode::kOutcomeUnknown) return attach(at_);
    const bool was_there = at_ > 0 || spawn_;
    if (was_there && why.code != FailureCode::kNotFound)
      return leave(kWayLost, unknown(why.message));
    end(was_there ? kWayLost : kNotBegun, unknown(why.message));
  } else if (failed.id == wait_) {
    wait_.reset();  // Whoever attaches waits anew.
    if (begun_) leave(kWayLost, unknown(why.message));
  } else if (failed.id == resize_) {  // It is about to end.
    resize_.reset();
  } else if (failed.id == look_) {
    look_.reset();
  }
}

void Sitting::hear(const wire::StreamUnwanted& unwanted) {
  if (unwanted.stream == typed_) unread_ = true;
}

void Sitting::hear(const wire::Noticed& noticed) {
  tell(noticed.notice.kind + ": " + noticed.notice.message);
}

// ---- One turn, and the end -------------------------------------------------------------------

void Sitting::step() {
  const bool reads = local_.taken() && !unread_ && session_.room(typed_) > 0;
  std::array<pollfd, 3> set = {
      pollfd{.fd = ends_.signals, .events = POLLIN, .revents = 0},
      reads ? pollfd{.fd = ends_.in, .events = POLLIN, .revents = 0} : kNothing,
      begun_ ? sink_->wants(session_) : kNothing};
  connection_.turn(set, next_moment());
  for (const wire::ConnectionEvent& event : connection_.take_events())
    std::visit([this](const auto& each) { hear(each); }, event);
  if (set[0].revents != 0)
    if (const auto number = next_signal(ends_.signals)) hear_signal(*number);
  if (set[1].revents != 0 && !exit_) read_typed();
  if (begun_) sink_->work(session_, set[2].revents);
  send_size();
  look_whether_it_is_there();
  if (const auto news = cut_news_.look(connection_, terminal_.clock.now())) tell(*news);
  judge();
}

base::Moment Sitting::next_moment() const {
  const bool looks = typed_at_ != base::Moment::max() && !look_ && !connection_.cut_since();
  return std::min(looks ? typed_at_ + kSilentFor : base::Moment::max(),
                  cut_news_.next_moment(connection_));
}

void Sitting::judge() {
  if (exit_) return;
  if (const auto& over = connection_.over()) return hear_over(*over);
  if (!begun_) return;
  if (sink_->failure()) return judge_broken_stream(*sink_->failure());
  if (sink_->problem()) return leave(kNotBegun, "cannot write what it shows");
  if (state_ && sink_->done()) end(exit_code_of(*state_));
}

// Who is let in no more cannot come back, be it that the sandbox has ended for good.
void Sitting::hear_over(const Failure& why) {
  if (why.code == FailureCode::kDenied) return end(kWayLost, unknown(why.message));
  leave(kWayLost, why.message);
}

void Sitting::judge_broken_stream(const Failure& failure) {
  // The session is gone, say after a long sleep. The terminal is not the session's.
  if (failure.code == FailureCode::kLost) return attach(at_);
  if (failure.code == FailureCode::kConflict)
    return leave(kWayLost, "somebody else has attached to it");
  leave(kWayLost, unknown(failure.message));
}

void Sitting::end(int code, const std::string& why) {
  if (exit_) return;
  exit_ = code;
  if (!why.empty()) tell(why);
}

void Sitting::leave(int code, const std::string& why) {
  if (exit_) return;
  left_ = true;
  end(code, why);
}

// The terminal here is as it was, and the one there is what it is.
void Sitting::get_up() {
  if (!state_) write_here(shown_.leave_modes());
  const bool was_raw = local_.taken();
  local_.give_back();
  if (left_)
    terminal_.err << (was_raw ? "\n" : "")
                  << "sandfleet: it goes on without you; come back by: " << seat_.way_back << "\n"
                  << std::flush;
  if (left_) let_it_be_read();
  connection_.finish();
}

// What was typed last has arrived once something asked behind it was answered: the end of a session
// ends its streams.
void Sitting::let_it_be_read() {
  if (connection_.over() || connection_.cut_since()) return;
  connection_.turn({}, terminal_.clock.now());  // Else the question would go out before it.
  static_cast<void>(connection_.ask(wire::WaitArgs{.handle = seat_.handle, .timeout_ms = 0}, {},
                                    {.moment = terminal_.clock.now() + kLastWordWithin}));
}

void Sitting::write_here(const std::string& text) const {
  for (std::size_t at = 0; at < text.size();) {
    const auto count = ::write(ends_.out, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) at += static_cast<std::size_t>(count);
  }
}

// Where keys are bytes, nobody else returns to the beginning of the line.
void Sitting::tell(const std::string& what) const {
  const bool raw = local_.taken();
  terminal_.err << (raw ? "\r\n" : "") << "sandfleet: " << what << (raw ? "\r\n" : "\n")
                << std::flush;
}

}  // namespace cli
