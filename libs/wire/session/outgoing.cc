#include "libs/wire/session/outgoing.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace wire {

std::size_t Outgoing::room(std::size_t allowance) const {
  return done_ || ended_ || held() >= allowance ? 0 : allowance - held();
}

void Outgoing::append(std::string_view bytes) {
  assert(!ended_);
  if (done_) return;
  bytes_.append(bytes);
  end_ += static_cast<std::int64_t>(bytes.size());
}

void Outgoing::skip(std::int64_t count) {
  if (done_ || count == 0) return;
  end_ += count;
  forget_before(end_);
}

void Outgoing::end(std::optional<Failure> error) {
  if (ended_ || done_) return;
  ended_ = true;
  error_ = std::move(error);
}

void Outgoing::stop() {
  forget_before(end_);
  done_ = true;
}

void Outgoing::forget_before(std::int64_t offset) {
  if (offset <= base_) return;
  gone_ += std::min(static_cast<std::size_t>(offset - base_), held());
  base_ = offset;
  if (gone_ < bytes_.size() / 2) return;  // Moved seldom enough to cost nothing.
  bytes_.erase(0, std::exchange(gone_, 0));
  if (bytes_.empty()) bytes_ = {};  // A stream that waits holds no memory.
}

base::Result<base::Done> Outgoing::credit(std::int64_t received, std::int64_t limit, bool ended) {
  using base::ErrorCode;
  if (done_) return base::Done{};
  if (received > sent_max_)
    return base::error(ErrorCode::kInvalid, "it received more than was sent");
  if (ended && (!ended_ || received != end_))
    return base::error(ErrorCode::kInvalid, "it received an end that was not sent");
  acknowledged_ = std::max(acknowledged_, received);
  limit_ = std::max(limit_, limit);
  forget_before(received);
  if (ended) stop();
  return base::Done{};
}

base::Result<base::Done> Outgoing::go_on(std::int64_t received, std::int64_t limit, bool ended) {
  if (received < acknowledged_)
    return base::error(base::ErrorCode::kInvalid, "it takes back what it had received");
  CHECK_OK(credit(received, limit, ended));
  sent_ = received;
  end_sent_ = false;
  blocked_ = false;
  return base::Done{};
}

void Outgoing::restart(std::int64_t limit) {
  assert(untouched());
  sent_ = sent_max_ = acknowledged_ = 0;
  limit_ = limit;
  end_sent_ = blocked_ = false;
}

bool Outgoing::ready() const {
  if (done_ || blocked_) return false;
  if (sent_ < base_) return true;
  return sent_ < end_ ? sent_ < limit_ : ended_ && !end_sent_;
}

Data Outgoing::next(std::size_t bytes_max) {
  assert(ready());
  Data data;
  if (sent_ < base_) {
    data.dropped = true;
    data.offset = sent_ = base_;
  } else {
    const std::int64_t allowed = std::min(end_, std::max(limit_, sent_)) - sent_;
    const std::size_t count = std::min(static_cast<std::size_t>(allowed), bytes_max);
    data.offset = sent_;
    data.payload = bytes_.substr(gone_ + static_cast<std::size_t>(sent_ - base_), count);
    sent_ += static_cast<std::int64_t>(count);
    if (ended_ && sent_ == end_) {
      data.end = end_sent_ = true;
      data.error = error_;
    }
  }
  sent_max_ = std::max(sent_max_, sent_);
  return data;
}

}  // namespace wire
