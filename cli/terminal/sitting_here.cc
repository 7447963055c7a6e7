#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cli/reach/asking.h"
#include "cli/reach/exit_code.h"
#include "cli/reach/held_signals.h"
#include "cli/terminal/sitting.h"
#include "libs/wire/frames/terminal_operations.h"

// What of a Sitting concerns the terminal here.
namespace cli {
namespace {

constexpr std::size_t kTypedBytes = 4096;

}  // namespace

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
  if (begun_ || !spawn_ || signalled_ != 0) return leave(kSignalled + number);
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
      local_.give_back();
      stop_as_job();
      sit_down_again();
  }
}

void Sitting::sit_down_again() {
  if (!begun_ || !local_.take()) return;
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
  resize_ = ask(session_, wire::ResizeTerminalArgs{.handle = seat_.handle, .size = sizes_.front()},
                {.mutating = true});
  sizes_.pop_front();
}

// What is typed asks for nothing, so it would neither wake a sandbox nor hear that it is paused.
void Sitting::look_whether_it_is_there() {
  if (look_ || connection_.cut_since() || typed_at_ == base::Moment::max() ||
      terminal_.clock.now() < typed_at_ + kSilentFor)
    return;
  typed_at_ = base::Moment::max();
  look_ = ask(session_, wire::ForegroundArgs{.handle = seat_.handle});
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

}  // namespace cli
