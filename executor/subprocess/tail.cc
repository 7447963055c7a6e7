#include "executor/subprocess/tail.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace executor {

std::size_t Tail::place_of(std::int64_t offset) const {
  return static_cast<std::size_t>(offset) % bytes_max_;
}

void Tail::append(std::string_view bytes) {
  const std::int64_t end = end_ + static_cast<std::int64_t>(bytes.size());
  if (bytes.size() > bytes_max_) bytes.remove_prefix(bytes.size() - bytes_max_);
  while (!bytes.empty()) {
    const std::size_t place = place_of(end - static_cast<std::int64_t>(bytes.size()));
    const std::size_t count = std::min(bytes.size(), bytes_max_ - place);
    if (const std::size_t needed = place + count; needed > ring_.size()) {
      if (needed > ring_.capacity())
        ring_.reserve(std::min(bytes_max_, std::max(needed, 2 * ring_.capacity())));
      ring_.resize(needed);
    }
    std::memcpy(ring_.data() + place, bytes.data(), count);
    bytes.remove_prefix(count);
  }
  end_ = end;
  begin_ = std::max(begin_, end_ - static_cast<std::int64_t>(bytes_max_));
}

void Tail::forget_before(std::int64_t offset) { begin_ = std::clamp(offset, begin_, end_); }

void Tail::forget_all() {
  begin_ = end_;
  ring_ = {};
}

std::string Tail::copy(std::int64_t offset, std::size_t bytes_max) const {
  assert(offset >= begin_ && offset <= end_);
  std::size_t left = std::min(static_cast<std::size_t>(end_ - offset), bytes_max);
  std::string bytes;
  bytes.reserve(left);
  while (left > 0) {
    const std::size_t place = place_of(offset);
    const std::size_t count = std::min(left, bytes_max_ - place);
    bytes.append(ring_, place, count);
    offset += static_cast<std::int64_t>(count);
    left -= count;
  }
  return bytes;
}

}  // namespace executor
