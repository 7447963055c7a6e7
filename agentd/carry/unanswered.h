#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "libs/base/clock.h"

namespace agentd {

// The requests that have lately gone to an executor, and whose replies have not come back. Its link
// may end before it has read them, as it cannot before a pause for idleness what it has read, but
// for those that only wait for others: these are none of them, or they would wake what pauses under
// them again and again. Bytes have no reply, but where they were read, nothing idled for the next
// second; so those that came in the last one may not have been read.
class Unanswered {
 public:
  static constexpr base::Milliseconds kLately{10'000};  // Longer, nothing is on its way.
  static constexpr base::Milliseconds kJustNow{1'000};  // The least `lifecycle.idleSeconds`.
  static constexpr std::size_t kMax = 256;  // Of more nobody needs to know: there are some.

  void sent(std::uint32_t request, base::Moment now) {
    std::erase_if(sent_, [&](const auto& each) { return now - each.second >= kLately; });
    if (sent_.size() < kMax) sent_.insert_or_assign(request, now);
  }
  void moved_bytes(base::Moment now) { bytes_moved_ = now; }  // Or room for more of them was made.
  void answered(std::uint32_t request) { sent_.erase(request); }
  void clear() {
    sent_.clear();
    bytes_moved_.reset();
  }
  bool any(base::Moment now) const {
    if (bytes_moved_ && now - *bytes_moved_ < kJustNow) return true;
    return std::ranges::any_of(sent_,
                               [&](const auto& each) { return now - each.second < kLately; });
  }

 private:
  std::map<std::uint32_t, base::Moment> sent_;
  std::optional<base::Moment> bytes_moved_;
};

}  // namespace agentd
