#include "executor/subprocess/input.h"

#include <utility>

namespace executor {

ProcessInput::ProcessInput(aio::Executor executor, base::Fd end)
    : stream_(aio::Stream::over(executor, base::Fd(), std::move(end))), changed_(executor) {}

aio::Task<> ProcessInput::carry(std::shared_ptr<ProcessInput> input) {
  for (;;) {
    while (input->waiting_.empty() && !input->ended_) co_await input->changed_.wait();
    if (input->waiting_.empty()) break;
    const std::string piece = std::exchange(input->waiting_, {});
    const auto written = co_await input->stream_->write(piece);
    if (!written) {
      input->unread_ = true;
      input->waiting_.clear();
      break;
    }
    input->written_ += static_cast<std::int64_t>(piece.size());
    input->changed_.notify_all();
  }
  input->stream_->close_write();
  input->changed_.notify_all();
}

std::int64_t ProcessInput::may_reach() const { return passed_on() + kInputWindowBytes; }

ProcessResult<base::Done> ProcessInput::put(std::int64_t offset, std::string_view bytes) {
  if (failure_) return *failure_;
  const std::int64_t end = offset + static_cast<std::int64_t>(bytes.size());
  if (offset < 0 || offset > arrived_)
    return ProcessFailure(ProcessFault::kInvalid, "a part of stdin is missing before this one");
  if (end <= arrived_) return base::Done{};
  if (ended_) return ProcessFailure(ProcessFault::kInvalid, "stdin has ended already");
  if (end > may_reach())
    return ProcessFailure(ProcessFault::kInvalid, "more for stdin than there is room for");
  append(bytes.substr(static_cast<std::size_t>(arrived_ - offset)));
  return base::Done{};
}

ProcessResult<base::Done> ProcessInput::end_at(std::int64_t offset) {
  if (failure_) return *failure_;
  if (offset != arrived_)
    return ProcessFailure(ProcessFault::kInvalid, "stdin does not end where it was said to");
  ended_ = true;
  changed_.notify_all();
  return base::Done{};
}

void ProcessInput::append(std::string_view bytes) {
  arrived_ += static_cast<std::int64_t>(bytes.size());
  if (!unread_) waiting_ += bytes;
  changed_.notify_all();
}

void ProcessInput::fail(ProcessFailure why) {
  failure_ = std::move(why);
  ended_ = unread_ = true;
  waiting_.clear();
  changed_.notify_all();
}

aio::Task<> ProcessInput::wait_to_reach(std::int64_t offset) {
  while (may_reach() < offset && !unread_) co_await changed_.wait();
}

aio::Task<> ProcessInput::wait_to_pass_on(std::int64_t offset) {
  while (passed_on() < offset && !unread_) co_await changed_.wait();
}

}  // namespace executor
