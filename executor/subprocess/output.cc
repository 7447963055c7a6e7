#include "executor/subprocess/output.h"

#include <algorithm>

namespace executor {
namespace {

constexpr std::size_t kChunkBytes = 64u << 10;

}  // namespace

std::int64_t ProcessOutput::bytes_max(const OutputMode& mode) {
  return std::visit(base::Overloaded{
                        [](const Ignored&) -> std::int64_t { return 0; },
                        [](const Piped&) -> std::int64_t { return kPipeWindowBytes; },
                        [](const Collect& collect) { return collect.bytes_max; },
                    },
                    mode);
}

ProcessOutput::ProcessOutput(aio::Executor executor, base::Fd end, OutputMode mode,
                             std::shared_ptr<SpillFolder> spills)
    : mode_(mode),
      spills_(std::move(spills)),
      stream_(aio::Stream::over(executor, std::move(end), base::Fd())),
      tail_(static_cast<std::size_t>(bytes_max(mode))),
      arrived_(executor),
      freed_(executor) {}

aio::Task<> ProcessOutput::carry(std::shared_ptr<ProcessOutput> output) {
  const bool piped = !output->collects();
  for (;;) {
    while (piped && !output->ended_ && output->tail_.room() == 0 && output->stream_->open())
      co_await output->freed_.wait();
    if (!co_await output->stream_->wait_readable()) break;
    // Held only while there is something to read: most processes are silent most of the time.
    const bool bounded = piped && !output->ended_;
    std::string chunk(bounded ? std::min(kChunkBytes, output->tail_.room()) : kChunkBytes, '\0');
    const auto got = co_await output->stream_->read(chunk.data(), chunk.size());
    if (!got || *got == 0) break;
    chunk.resize(*got);
    if (!output->ended_) co_await output->take(std::move(chunk));
  }
  output->stream_->close();  // One that is over for ten minutes holds no descriptor.
  co_await output->end();
}

// Whether the whole stream so far is in the tail, and is not after `more` bytes.
bool ProcessOutput::spills_now(std::size_t more) const {
  const auto* collect = std::get_if<Collect>(&mode_);
  return collect && collect->spill_bytes_max && spills_ && tail_.begin() == 0 &&
         more > tail_.room();
}

aio::Task<> ProcessOutput::take(std::string bytes) {
  std::string before;
  if (spills_now(bytes.size())) {
    spill_ = spills_->begin(*std::get<Collect>(mode_).spill_bytes_max);
    before = tail_.copy(0, tail_.size());
  }
  tail_.append(bytes);
  arrived_.notify_all();
  const auto spill = spill_;
  if (!spill) co_return;
  if (!before.empty()) co_await spill->add(std::move(before));
  co_await spill->add(std::move(bytes));
}

aio::Task<> ProcessOutput::end() {
  if (ended_) co_return;
  if (const auto spill = spill_) co_await spill->finish();
  tell_ended();
}

void ProcessOutput::tell_ended() {
  ended_ = true;
  arrived_.notify_all();
  freed_.notify_all();
}

void ProcessOutput::give_up() {
  if (ended_) return;
  tell_ended();
  drop_spill();  // It has missed the end.
}

void ProcessOutput::fail(ProcessFailure why) {
  failure_ = std::move(why);
  tail_.forget_all();
  tell_ended();
  drop_spill();
}

void ProcessOutput::drop_spill() {
  if (spill_) spills_->discard(spill_);
}

ProcessResult<Piece> ProcessOutput::read(std::int64_t from, std::size_t bytes_max) const {
  if (failure_) return *failure_;
  if (from < 0 || from > tail_.end())
    return ProcessFailure(ProcessFault::kInvalid, "there is nothing yet at that offset");
  if (!collects() && from < tail_.begin())
    return ProcessFailure(ProcessFault::kInvalid, "what stood at that offset was acknowledged");
  Piece piece;
  piece.lossy = from < tail_.begin();
  piece.begin = std::max(from, tail_.begin());
  piece.bytes = tail_.copy(piece.begin, bytes_max);
  piece.next = piece.begin + static_cast<std::int64_t>(piece.bytes.size());
  piece.ended = ended_ && piece.next == tail_.end();
  if (spill_) piece.spill_path = spill_->path();
  return piece;
}

aio::Task<> ProcessOutput::wait_for(std::int64_t from) {
  while (!ended_ && tail_.end() <= from) co_await arrived_.wait();
}

aio::Task<> ProcessOutput::wait_for_end() {
  while (!ended_) co_await arrived_.wait();
}

ProcessResult<base::Done> ProcessOutput::acknowledge(std::int64_t offset) {
  if (collects()) return base::Done{};
  if (offset > tail_.end())
    return ProcessFailure(ProcessFault::kInvalid, "that has not been written yet");
  tail_.forget_before(offset);
  freed_.notify_all();
  return base::Done{};
}

void ProcessOutput::hang_up() {
  if (collects()) return;
  stream_->close();
  tail_.forget_all();
  freed_.notify_all();
}

OutputState ProcessOutput::state() const {
  return {.bytes = tail_.end(),
          .ended = ended_,
          .lossy = collects() && tail_.begin() > 0,
          .spill_path = spill_ ? spill_->path() : std::nullopt};
}

}  // namespace executor
