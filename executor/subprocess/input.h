#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/subprocess/failure.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/fd.h"

namespace executor {

inline constexpr std::int64_t kInputWindowBytes = 256 << 10;

// A process's stdin, by absolute offsets: what arrives twice, because a connection was cut, is
// taken once. Of what is taken but not yet written there is never more than kInputWindowBytes. When
// the process does not read any more, what comes is taken and dropped.
class ProcessInput {
 public:
  ProcessInput(aio::Executor executor, base::Fd end);

  static aio::Task<> carry(std::shared_ptr<ProcessInput> input);  // Until the end was passed on.

  // kInvalid: it begins behind what has arrived, goes beyond may_reach(), or follows the end.
  ProcessResult<base::Done> put(std::int64_t offset, std::string_view bytes);
  // The stream ends after `offset` bytes, which have all arrived; may be repeated.
  ProcessResult<base::Done> end_at(std::int64_t offset);
  // What follows on what has arrived, of any size: who hands it on has taken it in already.
  void append(std::string_view bytes);
  // Nothing is taken any more, and that is the answer to whatever comes.
  void fail(ProcessFailure why);

  std::int64_t arrived() const { return arrived_; }
  std::int64_t passed_on() const { return unread_ ? arrived_ : written_; }
  std::int64_t may_reach() const;  // The offset up to which the peer may send.
  aio::Task<> wait_to_reach(std::int64_t offset);
  aio::Task<> wait_to_pass_on(std::int64_t offset);  // All before it, or to be unread.
  bool ended() const { return ended_; }              // Nothing more may come.
  bool unread() const { return unread_; }            // The process reads it no more.
  std::int64_t held() const { return arrived_ - passed_on(); }

 private:
  std::shared_ptr<aio::Stream> stream_;
  std::string waiting_;
  std::int64_t arrived_ = 0, written_ = 0;
  bool ended_ = false, unread_ = false;
  std::optional<ProcessFailure> failure_;
  aio::Condition changed_;
};

}  // namespace executor
