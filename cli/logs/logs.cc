#include "cli/logs/logs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <ostream>
#include <utility>

#include "cli/logs/line_tail.h"
#include "cli/reach/asking.h"
#include "cli/reach/cut_news.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/transfer.h"
#include "cli/reach/way.h"
#include "cli/reach/words.h"
#include "cli/terminal/shown.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/frames/file_operations.h"

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;
using wire::FailureCode;
using wire::OutputName;

constexpr std::int64_t kPieceBytes = 1 << 20;   // Of one question.
constexpr std::int64_t kBlockBytes = 64 << 10;  // Of one when lines are counted.
constexpr base::Milliseconds kWait{20'000};     // For more to be written.
constexpr base::Milliseconds kAskAgain{250};    // Where an executor does not wait.
constexpr int kLossesMax = 3;

const char* word_of(OutputName name) { return name == OutputName::kStdout ? "stdout" : "stderr"; }

// One output, on its way here.
struct Output {
  OutputName name = OutputName::kStdout;
  int descriptor = 1;
  wire::OutputState state = {};
  bool on_screen = false;
  std::int64_t at = 0;  // What is shown next.
  Shown shown = {};

  std::optional<std::uint32_t> asked = std::nullopt;
  std::optional<wire::Sink> sink = std::nullopt;  // Of what was asked for.
  bool answered = false, ended = false;
  int losses = 0;  // Of its session, in a row.
  base::Moment ask_at = {};
  bool done = false;

  // Where all of it stands, also what is not kept any more.
  const std::optional<std::string>& file() const { return state.spill_path; }
};

wire::Call question(const std::string& handle, const Output& output, std::int64_t from,
                    std::int64_t bytes, bool waits) {
  if (output.file())
    return wire::call_of(
        wire::ReadBytesArgs{.place = {.path = output.file()}, .from = from, .length = bytes},
        {.down = true});
  wire::ReadOutputArgs args{
      .handle = handle, .output = output.name, .from = from, .bytes_max = bytes};
  if (waits) args.wait_ms = kWait.count();
  return wire::call_of(args, {.down = true});
}

class Logs {
 public:
  Logs(wire::Connection& connection, const Options& options, const Ends& ends,
       const Terminal& terminal)
      : connection_(connection),
        session_(connection.session()),
        options_(options),
        handle_(options.words.back()),
        ends_(ends),
        terminal_(terminal),
        cut_news_(ends.watched) {}

  int run() {
    if (const auto begun = begin(); !begun) end(begun.error());
    while (!exit_) step();
    for (const Output& output : outputs_)
      if (output.on_screen) terminal_.out << output.shown.leave_modes() << std::flush;
    return *exit_;
  }

 private:
  Result<base::Done> begin();
  void choose(OutputName name, int descriptor, const std::optional<wire::OutputState>& state);
  Result<std::pair<std::int64_t, std::string>> read_block(const Output& output, std::int64_t from,
                                                          std::int64_t end);
  Result<std::int64_t> find_tail(const Output& output);
  bool may_ask(const Output& output) const;
  void ask(Output& output);
  void step();
  void hear(const wire::Answered& answered);
  void hear(const wire::Failed& failed);
  void hear(const wire::StreamUnwanted&) {}
  void hear(const wire::Noticed&) {}
  void hear_piece(Output& output, const base::Json& answer);
  std::string show(Output& output, const wire::Piece& piece);
  void carry(Output& output, short revents);
  void tell_of_gap(const Output& output, std::int64_t bytes);
  void go_on(Output& output, const wire::Failure& why);
  void lose_reader(int problem);
  void end(int code) { exit_ = exit_.value_or(code); }
  void end(const base::Error& why);
  void tell(const std::string& what) const;
  base::Moment next_moment() const;

  wire::Connection& connection_;
  wire::ClientSession& session_;
  const Options& options_;
  const std::string handle_;
  const Ends& ends_;
  const Terminal& terminal_;
  CutNews cut_news_;
  std::deque<Output> outputs_;
  std::optional<int> exit_;
};

// ---- Where to begin --------------------------------------------------------------------------

void Logs::choose(OutputName name, int descriptor, const std::optional<wire::OutputState>& state) {
  const bool wanted = name == OutputName::kStdout ? options_.stdout_only : options_.stderr_only;
  const bool both = options_.stdout_only == options_.stderr_only;
  if (!state || !(wanted || both)) return;
  Output& output = outputs_.emplace_back();
  output.name = name;
  output.descriptor = descriptor;
  output.state = *state;
  if (!state->lossy) output.state.spill_path.reset();  // All of it is kept.
  output.on_screen = ::isatty(descriptor) == 1;
}

Result<base::Done> Logs::begin() {
  const auto state = cli::look_at(connection_, handle_, ends_, terminal_);
  if (!state) return to_error(state.error());
  choose(OutputName::kStdout, ends_.out, state->out);
  choose(OutputName::kStderr, ends_.err, state->err);
  if (outputs_.empty())
    return base::error(ErrorCode::kNotFound, "process/", handle_,
                       ": of that, nothing was to be kept when it was started");
  for (Output& output : outputs_)
    if (options_.tail_lines >= 0) {
      TRY(output.at, find_tail(output));
    }
  return base::Done{};
}

// What stands before `end`, and where it begins: at `from`, or behind it where that is not kept.
Result<std::pair<std::int64_t, std::string>> Logs::read_block(const Output& output,
                                                              std::int64_t from, std::int64_t end) {
  const Ends unwatched{.signals = ends_.signals};
  Transfer transfer(connection_, unwatched, terminal_);
  CHECK_OK(transfer.begin(question(handle_, output, from, end - from, false)));
  std::string block;
  for (;;) {
    TRY(const std::string bytes, transfer.read());
    if (bytes.empty()) break;
    block += bytes;
  }
  TRY(const base::Json answer, transfer.end());
  if (output.file()) return std::pair(from, std::move(block));
  TRY(const auto ok, wire::from_json<wire::ReadOutputArgs::Ok>(answer));
  block.resize(
      std::min(block.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, end - ok.from))));
  return std::pair(ok.from, std::move(block));
}

// The beginning of so many last lines; 0 when there are no more.
Result<std::int64_t> Logs::find_tail(const Output& output) {
  LineTail tail(output.state.bytes, options_.tail_lines);
  while (!tail.found()) {
    const std::int64_t from = std::max<std::int64_t>(0, tail.at() - kBlockBytes);
    TRY(const auto read, read_block(output, from, tail.at()));
    tail.look(read.second);
    if (!tail.found() && read.first != from) return 0;  // No more is kept.
  }
  return *tail.found();
}

// ---- One turn --------------------------------------------------------------------------------

// Without --follow one output comes after the other.
bool Logs::may_ask(const Output& output) const {
  if (output.done || output.asked || terminal_.clock.now() < output.ask_at) return false;
  return options_.follow || &output == &outputs_.front() || outputs_.front().done;
}

void Logs::ask(Output& output) {
  const std::int64_t most =
      options_.follow && !output.file() ? kPieceBytes : output.state.bytes - output.at;
  if (most <= 0) {
    output.done = true;
    return;
  }
  const std::int64_t bytes = output.file() ? most : std::min(most, kPieceBytes);
  const auto id =
      session_.ask(question(handle_, output, output.at, bytes, options_.follow && !output.file()));
  if (!id) return end(id.error());
  output.asked = *id;
  output.answered = output.ended = false;
  output.sink.emplace(output.descriptor, *id,
                      [this, &output](const wire::Piece& piece) { return show(output, piece); });
}

// On a screen, questions to a terminal have been answered, and would be again.
std::string Logs::show(Output& output, const wire::Piece& piece) {
  output.at += static_cast<std::int64_t>(piece.bytes.size());
  return output.on_screen ? output.shown.pass(piece.bytes, true) : piece.bytes;
}

void Logs::step() {
  std::array<pollfd, 3> set = {pollfd{.fd = ends_.signals, .events = POLLIN, .revents = 0},
                               pollfd{.fd = -1, .events = 0, .revents = 0},
                               pollfd{.fd = -1, .events = 0, .revents = 0}};
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (may_ask(outputs_[i])) ask(outputs_[i]);
    if (outputs_[i].sink) set[i + 1] = outputs_[i].sink->wants(session_);
  }
  if (std::ranges::all_of(outputs_, &Output::done)) return end(kDone);
  connection_.turn(set, next_moment());
  for (const wire::ConnectionEvent& event : connection_.take_events())
    std::visit([this](const auto& each) { hear(each); }, event);
  for (std::size_t i = 0; i < outputs_.size(); ++i) carry(outputs_[i], set[i + 1].revents);
  if (set[0].revents != 0)
    if (const auto number = next_signal(ends_.signals)) end(kSignalled + *number);
  if (const auto news = cut_news_.look(connection_, terminal_.clock.now())) tell(*news);
  if (connection_.over()) end(to_error(*connection_.over()));
}

base::Moment Logs::next_moment() const {
  base::Moment next = cut_news_.next_moment(connection_);
  for (const Output& output : outputs_)
    if (!output.done && !output.asked) next = std::min(next, output.ask_at);
  return next;
}

void Logs::hear(const wire::Answered& answered) {
  for (Output& output : outputs_)
    if (output.asked == answered.id) hear_piece(output, answered.ok);
}

void Logs::hear_piece(Output& output, const base::Json& answer) {
  output.answered = true;
  output.losses = 0;
  if (output.file()) return;
  const auto ok = wire::from_json<wire::ReadOutputArgs::Ok>(answer);
  if (!ok) return end(ok.error());
  if (ok->from > output.at) tell_of_gap(output, ok->from - output.at);
  output.at = ok->from;
  output.ended = ok->ended;
  const bool empty = ok->next == ok->from;
  if (empty) output.ask_at = terminal_.clock.now() + kAskAgain;
}

void Logs::tell_of_gap(const Output& output, std::int64_t bytes) {
  tell(output.at == 0 ? dropped(bytes, word_of(output.name))
                      : std::to_string(bytes) + " bytes of its " + word_of(output.name) +
                            " were gone before they were read");
}

void Logs::hear(const wire::Failed& failed) {
  for (Output& output : outputs_)
    if (output.asked == failed.id) go_on(output, failed.failure);
}

void Logs::carry(Output& output, short revents) {
  if (!output.sink || !output.answered) return;
  output.sink->work(session_, revents);
  if (const auto problem = output.sink->problem()) return lose_reader(*problem);
  if (output.sink->failure()) return go_on(output, *output.sink->failure());
  if (!output.sink->done()) return;
  output.asked.reset();
  output.sink.reset();
  output.done =
      output.file() || output.ended || (!options_.follow && output.at >= output.state.bytes);
}

// A session that went takes only its own questions along.
void Logs::go_on(Output& output, const wire::Failure& why) {
  output.asked.reset();
  output.sink.reset();
  if (why.code == FailureCode::kLost && ++output.losses <= kLossesMax) return;
  if (why.code == FailureCode::kInvalid)
    return end(base::error(ErrorCode::kUnavailable, "process/", handle_, ": its ",
                           word_of(output.name), " goes to whoever began it, and is not kept"));
  end(to_error(why));
}

void Logs::lose_reader(int problem) {
  if (problem == EPIPE) return end(kSignalled + SIGPIPE);
  end(base::error(ErrorCode::kUnavailable, "cannot write what it says: ", std::strerror(problem)));
}

// What a signal has given up has not failed.
void Logs::end(const base::Error& why) {
  if (exit_) return;
  const auto number = next_signal(ends_.signals);
  exit_ = number ? kSignalled + *number : fail(why, terminal_.err);
}

void Logs::tell(const std::string& what) const {
  terminal_.err << "sandfleet: " << what << "\n" << std::flush;
}

}  // namespace

int show_logs(wire::Connection& connection, const Options& options, const Ends& ends,
              const Terminal& terminal) {
  const int code = Logs(connection, options, ends, terminal).run();
  connection.finish();
  return code;
}

}  // namespace cli
