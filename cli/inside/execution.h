#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/inside/execute.h"
#include "cli/line/terminal.h"
#include "cli/reach/command.h"
#include "cli/reach/cut_news.h"
#include "cli/reach/ends.h"
#include "libs/base/clock.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/frames/process_operations.h"

namespace cli {

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
  std::optional<wire::Failure> wait_failure_;
  std::optional<int> exit_;
};

}  // namespace cli
