#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/process/fanout.h"
#include "executor/process/spawn.h"
#include "executor/process/tree.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/result.h"

namespace executor {

// One command and its ends. It goes on whether anybody listens or not.
//
// Its end is told once the direct child has exited and all that the child itself wrote is
// delivered. Output of descendants that hold its pipes open is carried for kLingering more, and
// after that read and discarded, so that they neither delay the end nor die of a broken pipe.
class Process : public std::enable_shared_from_this<Process> {
 public:
  static constexpr base::Milliseconds kLingering{500};

  Process(aio::Executor executor, Launched launched, std::optional<std::filesystem::path> group);

  aio::Task<> run();  // Until the end has been told. Call once.

  pid_t pid() const { return pid_; }
  bool running() const { return !fanout_.ended(); }
  bool has_terminal() const { return terminal_; }
  std::shared_ptr<Fanout::Subscriber> subscribe() { return fanout_.subscribe(); }

  // All of it, in the order of calls. kUnavailable: its stdin is closed.
  aio::Task<base::Result<base::Done>> write_input(std::string bytes);
  void close_input();
  base::Result<base::Done> resize(TerminalSize size);
  bool signal(int number) { return tree_.signal(number); }  // The whole tree; see Tree::signal.

 private:
  struct Source {
    Channel channel;
    std::shared_ptr<aio::Stream> stream;
    bool open = true;
    std::int64_t in_hand = 0;          // Read, and not yet told.
    std::optional<std::int64_t> owed;  // What the child had written and was not told as it died.
  };
  static aio::Task<> pump(std::shared_ptr<Process> process, std::size_t index);
  aio::Task<int> wait_for_exit();
  void count_what_is_owed();
  bool all_delivered() const;
  bool all_closed() const;

  aio::Executor executor_;
  pid_t pid_;
  bool terminal_;
  Tree tree_;
  std::shared_ptr<aio::Stream> exit_notice_;
  std::shared_ptr<aio::Stream> input_;
  std::vector<Source> sources_;
  bool writing_ = false;
  aio::Condition input_free_;
  aio::Condition delivered_;
  Fanout fanout_;
  aio::TaskGroup pumps_;
};

}  // namespace executor
