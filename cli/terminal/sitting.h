#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "cli/line/terminal.h"
#include "cli/reach/command.h"
#include "cli/reach/cut_news.h"
#include "cli/reach/ends.h"
#include "cli/terminal/local_terminal.h"
#include "cli/terminal/shell.h"
#include "cli/terminal/shown.h"
#include "cli/terminal/typed.h"
#include "libs/base/clock.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/frames/process_operations.h"

namespace cli {

// The terminal there and the one here, from sitting down to getting up.
class Sitting {
 public:
  // What was typed and shows nothing for so long may have been typed into a sandbox that is paused.
  static constexpr base::Seconds kSilentFor{2};

  Sitting(wire::Connection& connection, const Seat& seat, const Ends& ends,
          const Terminal& terminal);

  void open();  // The session, where that is not open yet.
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
  void hear_over(const wire::Failure& why);
  void judge_broken_stream(const wire::Failure& failure);
  void leave(int code, const std::string& why = {});
  void end(int code, const std::string& why = {});
  void get_up();
  void let_it_be_read();
  void write_here(const std::string& text) const;
  void tell(const std::string& what) const;

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

}  // namespace cli
