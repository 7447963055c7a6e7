#include "executor/process/process.h"

#include <sys/ioctl.h>

#include "executor/process/child.h"
#include "executor/process/pty.h"

namespace executor {
namespace {

constexpr std::size_t kPipeChunkBytes = 32u << 10;
constexpr std::size_t kTerminalChunkBytes = 16u << 10;

base::Moment now() { return base::SystemClock().now(); }

}  // namespace

Process::Process(aio::Executor executor, Launched launched,
                 std::optional<std::filesystem::path> group)
    : executor_(executor),
      pid_(launched.pid),
      terminal_(static_cast<bool>(launched.terminal)),
      tree_(launched.pid, std::move(group)),
      exit_notice_(aio::Stream::over(executor, std::move(launched.pidfd))),
      input_free_(executor),
      delivered_(executor),
      fanout_(executor),
      pumps_(executor) {
  if (terminal_) {
    input_ = aio::Stream::over(executor, std::move(launched.terminal));
    sources_.push_back({Channel::kTerminal, input_});
    return;
  }
  if (launched.stdin_end)
    input_ = aio::Stream::over(executor, base::Fd(), std::move(launched.stdin_end));
  sources_.push_back(
      {Channel::kStdout, aio::Stream::over(executor, std::move(launched.stdout_end), base::Fd())});
  sources_.push_back(
      {Channel::kStderr, aio::Stream::over(executor, std::move(launched.stderr_end), base::Fd())});
}

aio::Task<> Process::pump(std::shared_ptr<Process> process, std::size_t index) {
  Source& source = process->sources_[index];
  std::string buffer(process->terminal_ ? kTerminalChunkBytes : kPipeChunkBytes, '\0');
  for (;;) {
    const auto got = co_await source.stream->read(buffer.data(), buffer.size());
    if (!got || *got == 0) break;
    source.in_hand = static_cast<std::int64_t>(*got);
    co_await process->fanout_.publish({source.channel, buffer.substr(0, *got)});
    if (source.owed) *source.owed -= source.in_hand;
    source.in_hand = 0;
    process->delivered_.notify_all();
  }
  source.open = false;
  process->delivered_.notify_all();
}

aio::Task<int> Process::wait_for_exit() {
  if (const auto ended = co_await until_ended(exit_notice_, pid_); !ended) co_return 0;
  tree_.root_ended();
  co_return reap(pid_);
}

void Process::count_what_is_owed() {
  for (Source& source : sources_) {
    int waiting = 0;
    const int fd = source.stream->read_descriptor();
    if (fd < 0 || ::ioctl(fd, FIONREAD, &waiting) != 0) waiting = 0;
    source.owed = waiting + source.in_hand;
  }
}

bool Process::all_delivered() const {
  for (const Source& source : sources_)
    if (source.open && source.owed.value_or(1) > 0) return false;
  return true;
}

bool Process::all_closed() const {
  for (const Source& source : sources_)
    if (source.open) return false;
  return true;
}

aio::Task<> Process::run() {
  const auto self = shared_from_this();
  for (std::size_t i = 0; i < sources_.size(); ++i) pumps_.spawn(pump(self, i));
  const int status = co_await wait_for_exit();
  count_what_is_owed();
  const base::Moment lingers_until = now() + kLingering;
  while (!all_closed()) {
    const auto left = lingers_until - now();
    if (left.count() <= 0 && all_delivered()) break;
    co_await aio::race(delivered_.wait(), aio::sleep_for(std::max(left, base::Milliseconds(20))));
  }
  close_input();
  fanout_.finish(describe_end(status));
}

aio::Task<base::Result<base::Done>> Process::write_input(std::string bytes) {
  const auto self = shared_from_this();
  while (writing_) co_await input_free_.wait();
  if (!input_ || !running())
    co_return base::error(base::ErrorCode::kUnavailable, "its input is closed");
  // Freed also when the writer is cancelled half-way.
  struct Turn {
    Process& process;
    explicit Turn(Process& process) : process(process) { process.writing_ = true; }
    ~Turn() {
      process.writing_ = false;
      process.input_free_.notify_all();
    }
  } const turn(*this);
  const auto input = input_;
  co_return co_await input->write(bytes);
}

void Process::close_input() {
  if (!input_ || terminal_) return;
  input_->close_write();
  input_.reset();
}

base::Result<base::Done> Process::resize(TerminalSize size) {
  if (!terminal_) return base::error(base::ErrorCode::kInvalid, "it has no terminal");
  return resize_terminal(input_->read_descriptor(), size);
}

}  // namespace executor
