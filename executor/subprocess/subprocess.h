#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/confine/permission.h"
#include "executor/subprocess/containment.h"
#include "executor/subprocess/input.h"
#include "executor/subprocess/output.h"
#include "executor/subprocess/request.h"
#include "executor/terminal/ends.h"
#include "executor/terminal/foreground.h"
#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"

namespace executor {

// What can be waited for. Each comes by itself: a command may end while its outputs are held open,
// and its outputs may end while some of its tree lives.
enum class Milestone {
  kExit,     // The command itself has ended.
  kSettled,  // And its outputs have: a collected one at the latest when the grace has passed.
  kEmpty,    // No living member of its tree is left. That is proven.
};

struct SubprocessState {
  pid_t pid = -1;  // -1 until it has begun.
  std::optional<Exit> exit = std::nullopt;
  bool settled = false, empty = false;
  std::optional<OutputState> out = std::nullopt, errors = std::nullopt;
  std::int64_t input_arrived = 0;
  std::optional<TerminalSize> terminal = std::nullopt;
  base::Milliseconds age{};
  bool detached = false;
};

enum class Reach { kCommand, kGroup, kTree };

// So long a signal waits for what was typed before it: it may be what makes room for that.
inline constexpr base::Milliseconds kBehindTyped{3'000};

// One command, from its request to the proof that nothing of it is left. It goes on whether anybody
// attends to it or not.
class Subprocess : public std::enable_shared_from_this<Subprocess> {
 public:
  struct Origin {
    std::string session;               // Whose it is.
    PermissionMode mode;               // What it may change.
    base::Milliseconds killed_within;  // How long the kernel may take to end a tree.
  };

  Subprocess(aio::Executor executor, SpawnRequest request, Origin origin, Contained contained,
             std::shared_ptr<const Terminal> terminal, std::shared_ptr<SpillFolder> spills);
  void start();  // Once, when a shared_ptr holds it.
  // Nobody will ask for it any more: what it holds goes, and what still lives is killed.
  void drop();

  const SpawnRequest& request() const { return request_; }  // Without the data for stdin.
  const std::string& session() const { return origin_.session; }
  PermissionMode mode() const { return origin_.mode; }
  void adopt(std::string session) { origin_.session = std::move(session); }
  SubprocessState state() const;
  bool over() const { return empty_ || unproven_; }  // Nothing will change any more.
  bool lost() const { return lost_; }
  std::int64_t held() const;      // By outputs, and for stdin.
  std::int64_t may_hold() const;  // Once they are full.

  // Until the program runs; kSpawnFailed says why it does not.
  aio::Task<ProcessResult<base::Done>> until_begun();
  // kSpawnFailed (but for kEmpty), kLost, kNotFound once it was dropped, and for kEmpty
  // kTerminateFailed.
  aio::Task<ProcessResult<base::Done>> until(Milestone milestone);

  // Whether it is so by now; the failures of until().
  ProcessResult<bool> look(Milestone milestone) const;

  // Until there is a proof, or it is clear that none is to be had just now: false.
  aio::Task<bool> join();

  // None: it is ignored, or goes nowhere.
  const std::shared_ptr<ProcessInput>& input() const { return input_; }
  const std::shared_ptr<ProcessOutput>& out() const { return out_; }
  const std::shared_ptr<ProcessOutput>& errors() const { return errors_; }

  // How many got it. kInvalid: no such signal.
  ProcessResult<int> signal(int number, Reach reach);
  // SIGTERM to the whole tree; SIGKILL to what is left after `grace`. Goes on without the caller;
  // a repeated one can only bring the end closer. After one that failed it begins with SIGKILL.
  void terminate(base::Milliseconds grace);
  // Its incarnation is over. It is killed, and is of no use to anybody.
  void lose();

  // Its terminal. kInvalid: it has none; kConflict: the command has ended, or is being ended.
  ProcessResult<base::Done> resize(TerminalSize size);
  // Nothing when no process group is in the foreground. It does not wait for input while not all of
  // the first `typed` bytes of stdin, or of what has arrived, were passed on to the terminal.
  aio::Task<ProcessResult<std::optional<Foreground>>> foreground(aio::Background& background,
                                                                 std::int64_t typed = 0);
  // Until the first `typed` bytes of stdin were passed on to the terminal; one that takes no more
  // is not waited for longer than kBehindTyped.
  aio::Task<> until_passed_on(std::int64_t typed);
  // To the process group in the foreground, which is returned. kInvalid: not one of SIGINT,
  // SIGQUIT, SIGTSTP, SIGTERM, SIGHUP and SIGKILL; kConflict: nobody is in the foreground, or it is
  // the command itself, and is not killed so; kDenied: they belong to another user.
  ProcessResult<pid_t> signal_foreground(int number);

 private:
  static aio::Task<> learn_how_it_began(std::shared_ptr<Subprocess> self,
                                        std::shared_ptr<aio::Stream> report);
  static aio::Task<> follow(std::shared_ptr<Subprocess> self);
  static aio::Task<> settle(std::shared_ptr<Subprocess> self);
  static aio::Task<> escalate(std::shared_ptr<Subprocess> self, bool kindly);
  void hear_begun(pid_t pid);
  void hear_exited(const Exit& exit);
  std::shared_ptr<ProcessOutput> open(base::Fd end, const OutputMode& mode,
                                      const std::shared_ptr<SpillFolder>& spills);
  void fail_outputs(const ProcessFailure& why);
  ProcessResult<base::Done> has_terminal() const;
  void refuse_input(std::string_view why);
  void close_terminal(std::string_view why);
  bool hang_up_lonely_shell();
  std::optional<ProcessFailure> obstacle(Milestone milestone) const;
  bool reached(Milestone milestone) const;

  aio::Executor executor_;
  SpawnRequest request_;
  Origin origin_;
  base::Moment begun_;
  std::unique_ptr<Containment> tree_;
  base::Fd report_;
  std::shared_ptr<ProcessInput> input_;
  std::shared_ptr<ProcessOutput> out_, errors_;
  std::shared_ptr<const Terminal> terminal_;  // Until the command has ended.

  pid_t pid_ = -1;
  bool launched_ = false;  // The report has come, whatever it says.
  std::optional<ProcessFailure> failure_;
  std::optional<Exit> exit_;
  bool settled_ = false, empty_ = false, lost_ = false, dropped_ = false, ending_ = false;
  std::optional<ProcessFailure> unproven_;
  std::optional<base::Moment> kill_at_;  // While it escalates.
  bool failed_to_end_ = false;
  aio::Condition changed_;
  aio::TaskGroup tasks_;
};

}  // namespace executor
