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

#include "cli/logs/beginning.h"
#include "cli/logs/output.h"
#include "cli/reach/cut_news.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/reach/way.h"
#include "cli/reach/words.h"

namespace cli {
namespace {

using base::ErrorCode;
using wire::FailureCode;

constexpr std::int64_t kPieceBytes = 1 << 20;  // Of one question.
// For more to be written. Who asks again is active, and would keep up what idles.
constexpr base::Seconds kWait{86'400};
constexpr base::Milliseconds kAskAgain{250};  // Where an executor does not wait.
constexpr int kLossesMax = 3;

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
    auto outputs = outputs_to_show(connection_, options_, ends_, terminal_);
    if (!outputs) end(outputs.error());
    if (outputs) outputs_ = *std::move(outputs);
    while (!exit_) step();
    for (const Output& output : outputs_)
      if (output.on_screen) terminal_.out << output.shown.leave_modes() << std::flush;
    return *exit_;
  }

 private:
  bool has_turn(const Output& output) const;
  bool may_ask(const Output& output) const;
  pollfd wants(Output& output);
  void ask(Output& output);
  void step();
  void hear(const wire::Answered& answered);
  void hear(const wire::Failed& failed);
  void hear(const wire::StreamUnwanted&) {}
  void hear(const wire::Noticed&) {}
  void hear_piece(Output& output, const base::Json& answer);
  std::string show(Output& output, const wire::Piece& piece);
  void carry(Output& output, short revents);
  void write_first(Output& output);
  void tell_of_gap(const Output& output, std::int64_t bytes);
  void go_on(Output& output, const wire::Failure& why);
  void lose_reader(int problem);
  void end(int code) { exit_ = exit_.value_or(code); }
  void end(const base::Error& why);
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

// Without --follow one output comes after the other.
bool Logs::has_turn(const Output& output) const {
  if (output.done) return false;
  return options_.follow || &output == &outputs_.front() || outputs_.front().done;
}

bool Logs::may_ask(const Output& output) const {
  return has_turn(output) && output.first.empty() && !output.asked &&
         terminal_.clock.now() >= output.ask_at;
}

pollfd Logs::wants(Output& output) {
  if (output.sink) return output.sink->wants(session_);
  const bool writes = has_turn(output) && !output.first.empty();
  return {.fd = writes ? output.descriptor : -1, .events = POLLOUT, .revents = 0};
}

void Logs::ask(Output& output) {
  const bool follows = options_.follow && !output.file;
  const std::int64_t most = follows ? kPieceBytes : output.end - output.at;
  if (most <= 0) {
    output.done = true;
    return;
  }
  const std::int64_t bytes = output.file ? most : std::min(most, kPieceBytes);
  const auto id =
      session_.ask(question(handle_, output, output.at, bytes, follows ? kWait : base::Seconds(0)));
  if (!id) return end(id.error());
  output.asked = *id;
  output.answered = output.last = false;
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
    set[i + 1] = wants(outputs_[i]);
  }
  if (std::ranges::all_of(outputs_, &Output::done)) return end(kDone);
  connection_.turn(set, next_moment());
  for (const wire::ConnectionEvent& event : connection_.take_events())
    std::visit([this](const auto& each) { hear(each); }, event);
  for (std::size_t i = 0; i < outputs_.size(); ++i) carry(outputs_[i], set[i + 1].revents);
  if (set[0].revents != 0)
    if (const auto number = next_signal(ends_.signals)) end(kSignalled + *number);
  if (const auto news = cut_news_.look(connection_, terminal_.clock.now())) tell(terminal_, *news);
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
  if (output.file) return;
  const auto ok = wire::from_json<wire::ReadOutputArgs::Ok>(answer);
  if (!ok) return end(ok.error());
  if (ok->from > output.at) tell_of_gap(output, ok->from - output.at);
  output.at = ok->from;
  const bool empty = ok->next == ok->from;
  output.last = ok->ended || (empty && !options_.follow);
  if (empty) output.ask_at = terminal_.clock.now() + kAskAgain;
}

void Logs::tell_of_gap(const Output& output, std::int64_t bytes) {
  tell(terminal_, output.at == 0 ? dropped(bytes, word_of(output.name))
                                 : std::to_string(bytes) + " bytes of its " + word_of(output.name) +
                                       " were gone before they were read");
}

void Logs::hear(const wire::Failed& failed) {
  for (Output& output : outputs_)
    if (output.asked == failed.id) go_on(output, failed.failure);
}

void Logs::write_first(Output& output) {
  const auto count = ::write(output.descriptor, output.first.data(),
                             std::min(output.first.size(), wire::Sink::kWriteBytes));
  if (count >= 0)
    output.first.erase(0, static_cast<std::size_t>(count));
  else if (errno != EAGAIN && errno != EINTR)
    lose_reader(errno);
}

void Logs::carry(Output& output, short revents) {
  if (!output.sink && revents != 0) write_first(output);
  if (!output.sink) return;
  if (!output.answered && (revents & (POLLERR | POLLNVAL)) != 0) return lose_reader(EPIPE);
  if (!output.answered) return;
  output.sink->work(session_, revents);
  if (const auto problem = output.sink->problem()) return lose_reader(*problem);
  if (output.sink->failure()) return go_on(output, *output.sink->failure());
  if (!output.sink->done()) return;
  output.asked.reset();
  output.sink.reset();
  if (output.file && output.at < output.end)
    return end(base::error(ErrorCode::kUnavailable, *output.file, " ends at ",
                           std::to_string(output.at), " and is to have ",
                           std::to_string(output.end), " bytes"));
  output.done = output.file || output.last || (!options_.follow && output.at >= output.end);
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

}  // namespace

int show_logs(wire::Connection& connection, const Options& options, const Ends& ends,
              const Terminal& terminal) {
  const int code = Logs(connection, options, ends, terminal).run();
  connection.finish();
  return code;
}

}  // namespace cli
