#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "libs/base/clock.h"

namespace base {

// So many at once, and one more each `refill`.
struct Rate {
  int burst = 1;
  Milliseconds refill{1'000};
};

class TokenBucket {
 public:
  TokenBucket(Rate rate, Moment now) : rate_(rate), tokens_(rate.burst), at_(now) {}

  bool take(Moment now) {
    tokens_ = tokens(now);
    at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // How long until one can be taken.
  Milliseconds wait(Moment now) const {
    const double missing = std::max(0.0, 1 - tokens(now));
    return Milliseconds(
        std::llround(std::ceil(missing * static_cast<double>(rate_.refill.count()))));
  }
  bool is_full(Moment now) const { return tokens(now) >= rate_.burst; }

 private:
  double tokens(Moment now) const {
    const double grown =
        static_cast<double>((now - at_).count()) / static_cast<double>(rate_.refill.count());
    return std::min<double>(rate_.burst, tokens_ + grown);
  }

  Rate rate_;
  double tokens_;
  Moment at_;
};

// One bucket for each name, for `names_max` of them; a name beyond is refused until another has
// been quiet for long enough to have all its tokens again.
class TokenBuckets {
 public:
  TokenBuckets(Rate rate, std::size_t names_max) : rate_(rate), names_max_(names_max) {}

  bool take(const std::string& name, Moment now) {
    if (buckets_.size() >= names_max_ && !buckets_.contains(name)) {
      std::erase_if(buckets_, [&](const auto& each) { return each.second.is_full(now); });
      if (buckets_.size() >= names_max_) return false;
    }
    return buckets_.try_emplace(name, rate_, now).first->second.take(now);
  }
  Milliseconds wait(const std::string& name, Moment now) const {
    const auto found = buckets_.find(name);
    return found == buckets_.end() ? rate_.refill : found->second.wait(now);
  }

 private:
  const Rate rate_;
  const std::size_t names_max_;
  std::map<std::string, TokenBucket> buckets_;
};

}  // namespace base
