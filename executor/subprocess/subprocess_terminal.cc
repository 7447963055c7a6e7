#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "executor/subprocess/subprocess.h"
#include "libs/base/files.h"
#include "libs/base/kernel_files.h"

// What of a Subprocess concerns its terminal.
namespace executor {
namespace {

ProcessFailure conflict(std::string_view why) {
  return ProcessFailure(ProcessFault::kConflict, why);
}

// As an interactive shell does with SIGTERM, but not with the end of its terminal.
bool ignores(pid_t pid, int number) {
  constexpr std::string_view kIgnored = "SigIgn:\t";  // And 64 bits in hexadecimal: proc(5).
  const auto status = base::read_file("/proc/" + std::to_string(pid) + "/status");
  const auto at = status ? status->find(kIgnored) : std::string::npos;
  if (at == std::string::npos) return false;
  const std::uint64_t ignored = std::strtoull(status->c_str() + at + kIgnored.size(), nullptr, 16);
  return (ignored >> (number - 1) & 1) != 0;
}

bool can_be_sent(int number) {
  return is_sent_by_terminal(number) || number == SIGTERM || number == SIGHUP || number == SIGKILL;
}

}  // namespace

void Subprocess::refuse_input(std::string_view why) {
  if (input_) input_->fail(conflict(why));
}

void Subprocess::close_terminal(std::string_view why) {
  if (terminal_) refuse_input(why);
  terminal_.reset();
}

// Whether there is no need to try again. A shell that is hung up does the same to its jobs, so
// those are given the time first that is theirs.
bool Subprocess::hang_up_lonely_shell() {
  if (!terminal_) return true;
  if (tree_->members() != std::vector<pid_t>{pid_}) return false;
  if (ignores(pid_, SIGTERM)) static_cast<void>(signal(SIGHUP, Reach::kCommand));
  return true;
}

ProcessResult<base::Done> Subprocess::has_terminal() const {
  if (lost_) return ProcessFailure(ProcessFault::kLost, "the process went with its incarnation");
  if (!request_.terminal) return ProcessFailure(ProcessFault::kInvalid, "it has no terminal");
  if (!terminal_) return conflict("the command in the terminal has ended");
  if (ending_) return conflict("the terminal is being ended");
  return base::Done{};
}

ProcessResult<base::Done> Subprocess::resize(TerminalSize size) {
  CHECK_OK(check(size));
  CHECK_OK(has_terminal());
  if (const auto resized = resize_terminal(terminal_->master.get(), size); !resized)
    return conflict(resized.error().message);
  request_.terminal = size;
  return base::Done{};
}

aio::Task<ProcessResult<std::optional<Foreground>>> Subprocess::foreground(
    aio::Background& background, std::int64_t typed) {
  const auto self = shared_from_this();
  CO_CHECK_OK(has_terminal());
  if (input_ && input_->passed_on() < std::max(typed, input_->arrived())) {
    const auto group = foreground_group(terminal_->master.get());
    if (!group) co_return std::optional<Foreground>();
    co_return std::optional(Foreground{*group, InputWaiting::kNo});
  }
  const auto looked =
      co_await background.run([terminal = terminal_]() -> base::Result<std::optional<Foreground>> {
        return look_at_foreground(*terminal);
      });
  if (!looked) co_return ProcessFailure(ProcessFault::kBusy, looked.error().message);
  CO_CHECK_OK(has_terminal());  // Meanwhile it may have ended.
  co_return *looked;
}

aio::Task<> Subprocess::until_passed_on(std::int64_t typed) {
  const auto input = input_;
  if (input) co_await aio::race(input->wait_to_pass_on(typed), aio::sleep_for(kBehindTyped));
}

ProcessResult<pid_t> Subprocess::signal_foreground(int number) {
  if (!can_be_sent(number))
    return ProcessFailure(ProcessFault::kInvalid,
                          "a foreground gets SIGINT, SIGQUIT, SIGTSTP, SIGTERM, SIGHUP or SIGKILL");
  CHECK_OK(has_terminal());
  const auto group = foreground_group(terminal_->master.get());
  if (!group) return conflict("no process group is in the foreground");
  if (is_sent_by_terminal(number)) {
    const auto sent = send_by_terminal(terminal_->master.get(), number);
    if (!sent) return conflict(sent.error().message);
    return *group;
  }
  if (number == SIGKILL && *group == pid_)
    return conflict("the command of the terminal is in the foreground; terminate it instead");
  // Members alone, so that a number that means somebody else by now reaches nobody.
  const auto list = [&] {
    std::vector<pid_t> members = tree_->members();
    std::erase_if(members, [&](pid_t pid) {
      const auto facts = base::look_at_process(pid);
      return !facts || facts->group != *group || facts->session != pid_;
    });
    return members;
  };
  const auto reached = signal_each(list, number);
  if (!reached) return ProcessFailure(ProcessFault::kDenied, reached.error().message);
  if (*reached == 0) return conflict("who was in the foreground has just ended");
  return *group;
}

}  // namespace executor
