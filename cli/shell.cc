#include "cli/shell.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <ostream>
#include <utility>

#include "cli/cut_news.h"
#include "cli/exit_code.h"
#include "cli/held_signals.h"
#include "cli/local_terminal.h"
#include "cli/shown.h"
#include "libs/base/clock.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/frames/terminal_operations.h"

namespace cli {
namespace {

using wire::Failure;
using wire::FailureCode;

// Of what a terminal has shown, kept for who comes back.
constexpr std::int64_t kKeptBytes = 1 << 20;
// What was typed and shows nothing for so long may have been typed into a sandbox that is paused.
constexpr base::Seconds kSilentFor{2};
constexpr base::Seconds kLastWordWithin{5};
constexpr std::size_t kTypedBytes = 4096;
constexpr pollfd kNothing{.fd = -1, .events = 0, .revents = 0};

// The terminal there and the one here, from sitting down to getting up.
class Sitting {
 public:
  Sitting(wire::Connection& connection, const Seat& seat, const Ends& ends,
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

  void open();
  void spawn(const Command& command);
  void attach(std::int64_t from);
  int run() {
    while (!exit_) step();
    get_up();
    return *exit_;
  }

 private:
  void wait_for_its_end();
  wire::Sink new_sink();
  void begin();
  void step();
  base::Moment next_moment() const;
  void hear(const wire::Answered& answered);
  void hear(const wire::Failed& failed);
  void hear(const wire::StreamUnwanted& unwanted);
  void hear(const wire::Noticed& noticed);
  void hear_attached(const base::Json& answer);
  void hear_signal(int number);
  void read_typed();
  void obey(Wish wish);
  void sit_down_again();
  std::string show(const wire::Piece& piece);
  void repaint();
  void send_size();
  void look_whether_it_is_there();
  void judge();
  void judge_broken_stream(const Failure& failure);
  void leave(int code, const std::string& why = {});
  void end(int code, const std::string& why = {});
  void get_up();
  void let_it_be_read();
  void write_here(const std::string& text) const;
  void tell(const std::string& what) const;
  template <typename Args>
  std::optional<std::uint32_t> ask(const Args& args, wire::Call how = {});

  wire::Connection& connection_;
  wire::ClientSession& session_;
  const Seat& seat_;
  Escapes escapes_;
  const Ends& ends_;
  const Terminal& terminal_;
  LocalTerminal local_;
  CutNews cut_news_{true};
  Shown shown_;

  std::optional<std::uint32_t> spawn_, attach_, wait_, resize_, look_;
  bool begun_ = false;
  int signalled_ = 0;                     // Before it had begun.
  std::uint32_t typed_ = 0;               // The stream,
  bool unread_ = false;                   // which nobody reads any more.
  std::optional<wire::Sink> sink_;        // What it shows.
  std::int64_t stream_begin_ = 0;         // Where that stream begins in all that was ever shown.
  std::int64_t at_ = 0;                   // Of that, how far it was shown here.
  std::int64_t seen_before_ = 0;          // Of that, how far it was shown before we came.
  std::deque<wire::TerminalSize> sizes_;  // To be told; the last is ours.
  base::Moment typed_at_ = base::Moment::max();  // And nothing was shown since.
  std::optional<wire::ProcessState> state_;      // How it ended.
  bool left_ = false;
  std::optional<int> exit_;
};

template <typename Args>
std::optional<std::uint32_t> Sitting::ask(const Args& args, wire::Call how) {
  how.op = Args::kOp;
  how.args = wire::to_json(args);
  const auto id = session_.ask(std::move(how));
  return id ? std::optional(*id) : std::nullopt;
}

// ---- Beginning -------------------------------------------------------------------------------

void Sitting::open() {
  const auto welcome = connection_.open({.wake = ends_.signals});
  if (welcome) return;
  const bool signalled = welcome.error().code == FailureCode::kCancelled;
  const auto number = signalled ? next_signal(ends_.signals) : std::nullopt;
  if (number) return end(kSignalled + *number);
  end(kNotBegun, welcome.error().message);
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
  spawn_ = ask(args, {.mutating = true,
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
      wire::AttachArgs{
          .handle = seat_.handle, .in = typed_, .out = wire::AttachedOutput{sink_->stream(), from}},
      {.mutating = true, .to_client = {sink_->stream()}, .to_server = {typed_}});
  if (!wait_) wait_for_its_end();
}

void Sitting::wait_for_its_end() {
  wait_ = ask(wire::WaitArgs{.handle = seat_.handle, .until = wire::WaitUntil::kSettled});
}

void Sitting::begin() {
  begun_ = true;
  local_.make_raw();
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
    end(at_ > 0 || spawn_ ? kWayLost : kNotBegun, "what became of it is not known: " + why.message);
  } else if (failed.id == wait_) {
    if (begun_) end(kWayLost, "what became of it is not known: " + why.message);
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

std::string Sitting::show(const wire::Piece& piece) {
  const std::int64_t from = stream_begin_ + piece.offset;
  const bool gap = from > at_ && at_ > 0;
  at_ = from + static_cast<std::int64_t>(piece.bytes.size());
  typed_at_ = base::Moment::max();
  if (gap) repaint();  // Who was too slow has a picture with a hole.
  const auto again =
      static_cast<std::size_t>(std::clamp<std::int64_t>(seen_before_ - from, 0, at_ - from));
  const std::string_view bytes = piece.bytes;
  return shown_.pass(bytes.substr(0, again), true) + shown_.pass(bytes.substr(again), false);
}

// ---- What happens here -----------------------------------------------------------------------

void Sitting::hear_signal(int number) {
  switch (number) {
    case SIGWINCH:
      sizes_ = {local_.size()};
      return;
    case SIGTSTP:
      return obey(Wish::kStop);
    case SIGCONT:
      return sit_down_again();
    default:
      break;
  }
  if (begun_ || !spawn_) return leave(kSignalled + number);
  if (signalled_ != 0) return leave(kSignalled + number);
  signalled_ = number;
  session_.cancel(*spawn_);
}

void Sitting::read_typed() {
  std::array<char, kTypedBytes> buffer;
  const std::size_t room = std::min(buffer.size(), session_.room(typed_));
  if (room == 0) return;  // By now.
  const auto count = ::read(ends_.in, buffer.data(), room);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return leave(kSignalled + SIGHUP);  // The terminal here is gone.
  for (const Typed& typed : escapes_.read({buffer.data(), static_cast<std::size_t>(count)})) {
    if (exit_) return;
    if (const auto* wish = std::get_if<Wish>(&typed)) {
      obey(*wish);
      continue;
    }
    session_.append(typed_, std::get<std::string>(typed));
    typed_at_ = std::min(typed_at_, terminal_.clock.now());
  }
}

void Sitting::obey(Wish wish) {
  switch (wish) {
    case Wish::kLeave:
      return leave(0);
    case Wish::kHelp:
      return tell(escapes_help(seat_.escape_char));
    case Wish::kStop:
      write_here(shown_.leave_modes());
      local_.restore();
      stop_as_job();
      sit_down_again();
  }
}

void Sitting::sit_down_again() {
  if (!begun_) return;
  local_.make_raw();
  write_here(shown_.enter_modes());
  repaint();
}

// Programs paint when the size changes.
void Sitting::repaint() {
  const wire::TerminalSize size = local_.size();
  sizes_ = {{size.rows > 1 ? size.rows - 1 : size.rows + 1, size.columns}, size};
}

void Sitting::send_size() {
  if (!begun_ || resize_ || sizes_.empty() || exit_) return;
  resize_ = ask(wire::ResizeTerminalArgs{.handle = seat_.handle, .size = sizes_.front()},
                {.mutating = true});
  sizes_.pop_front();
}

// What is typed asks for nothing, so it would neither wake a sandbox nor hear that it is paused.
void Sitting::look_whether_it_is_there() {
  if (look_ || connection_.cut_since() || typed_at_ == base::Moment::max() ||
      terminal_.clock.now() < typed_at_ + kSilentFor)
    return;
  typed_at_ = base::Moment::max();
  look_ = ask(wire::ForegroundArgs{.handle = seat_.handle});
}

// ---- One turn, and the end -------------------------------------------------------------------

void Sitting::step() {
  const bool reads = begun_ && !unread_ && local_.raw() && session_.room(typed_) > 0;
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
  if (const auto& over = connection_.over()) return leave(kWayLost, over->message);
  if (!begun_) return;
  if (sink_->failure()) return judge_broken_stream(*sink_->failure());
  if (sink_->problem()) return leave(kNotBegun, "cannot write what it shows");
  if (state_ && sink_->done()) end(exit_code_of(*state_));
}

void Sitting::judge_broken_stream(const Failure& failure) {
  // The session is gone, say after a long sleep. The terminal is not the session's.
  if (failure.code == FailureCode::kLost) return attach(at_);
  if (failure.code == FailureCode::kConflict)
    return leave(kWayLost, "somebody else has attached to it");
  end(kWayLost, "what became of it is not known: " + failure.message);
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
  const bool was_raw = local_.raw();
  local_.restore();
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
  const bool raw = local_.raw();
  terminal_.err << (raw ? "\r\n" : "") << "sandfleet: " << what << (raw ? "\r\n" : "\n")
                << std::flush;
}

}  // namespace

base::Result<Command> read_shell(const Options& options) {
  Options named = options;
  // Which shell it is only the sandbox knows.
  if (named.command.empty()) named.command = {"/bin/sh", "-c", R"(exec "${SHELL:-/bin/sh}" -l)"};
  return read_command(named);
}

int open_terminal(wire::Connection& connection, const Command& command, const Seat& seat,
                  const Ends& ends, const Terminal& terminal) {
  Sitting sitting(connection, seat, ends, terminal);
  sitting.open();
  sitting.spawn(command);
  return sitting.run();
}

int attach_terminal(wire::Connection& connection, const Seat& seat, const Ends& ends,
                    const Terminal& terminal) {
  Sitting sitting(connection, seat, ends, terminal);
  sitting.attach(0);
  return sitting.run();
}

}  // namespace cli
