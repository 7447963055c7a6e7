#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "executor/subprocess/request.h"
#include "executor/subprocess/spill.h"
#include "executor/subprocess/tail.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/fd.h"

namespace executor {

// As much as a stream of the session protocol may be ahead of its receiver's word: a reader that
// takes all it gets is never waited for.
inline constexpr std::size_t kPipeWindowBytes = 1u << 20;

struct OutputState {
  std::int64_t bytes = 0;  // In all.
  bool ended = false;      // There will be no more of them.
  bool lossy = false;      // The first of them are gone.
  std::optional<std::string> spill_path = std::nullopt;
};

// What was asked for of an output. Less may stand at its end than was written: where the tail
// begins after `from` was asked for, `bytes` begin at `begin`, and that is the mark of the drop.
struct Piece {
  std::int64_t begin = 0, next = 0;
  std::string bytes;
  bool lossy = false;
  bool ended = false;  // Nothing comes at `next` any more.
  std::optional<std::string> spill_path = std::nullopt;
};

// One output of a process, by absolute offsets that belong to those who read.
//   Piped: holds up to kPipeWindowBytes that are not acknowledged yet, and reads no more meanwhile.
//   Collect: always reads, and holds the last bytes; on the first drop, all of them go to a spill.
class ProcessOutput {
 public:
  ProcessOutput(aio::Executor executor, base::Fd end, OutputMode mode,
                std::shared_ptr<SpillFolder> spills);

  // Reads on until the end of the stream: that of the last process that holds it open.
  static aio::Task<> carry(std::shared_ptr<ProcessOutput> output);

  // What is there of it now. kInvalid: nobody has written so far, or these bytes were acknowledged.
  // After fail(): that failure, so that a stream that broke off is not taken for one that ended.
  ProcessResult<Piece> read(std::int64_t from, std::size_t bytes_max) const;
  // Until there is something at `from` or behind it, or the end.
  aio::Task<> wait_for(std::int64_t from);
  aio::Task<> wait_for_end();
  // Piped: the bytes before `offset` have arrived for good, and there is room for as many.
  ProcessResult<base::Done> acknowledge(std::int64_t offset);
  // Piped: its reader wants no more. Whoever writes on is told so, as by any pipe without a reader.
  void hang_up();

  // Whoever still holds it open is not waited for: what comes now is read and dropped.
  void give_up();
  // It is of no use to anybody any more, because of `why`; its spill is gone a moment later.
  void fail(ProcessFailure why);

  OutputState state() const;
  bool ended() const { return ended_; }
  std::int64_t begin() const { return tail_.begin(); }  // Of what can be read.
  bool collects() const { return std::holds_alternative<Collect>(mode_); }
  // What it may come to hold, and what it does hold.
  static std::int64_t bytes_max(const OutputMode& mode);
  std::int64_t held() const { return static_cast<std::int64_t>(tail_.size()); }

 private:
  bool spills_now(std::size_t more) const;
  aio::Task<> take(std::string bytes);
  aio::Task<> end();
  void tell_ended();
  void drop_spill();

  OutputMode mode_;
  std::shared_ptr<SpillFolder> spills_;
  std::shared_ptr<aio::Stream> stream_;
  Tail tail_;
  std::shared_ptr<Spill> spill_;
  bool ended_ = false;
  std::optional<ProcessFailure> failure_;
  aio::Condition arrived_, freed_;
};

}  // namespace executor
