#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "libs/base/clock.h"

namespace local_e2b {

inline constexpr std::size_t kRememberedMax = 10'000;

struct Remembered {
  base::WallTime at;  // When it was done.
  std::string team, method, path, fault;
  std::string sandbox_id;  // That it was about, or that it made.
  base::Milliseconds took{0};
  int status = 0;  // 0: not known, because a port of the sandbox answered.
};

// What one plane was asked, for those who test against this server: the newest, in the order in
// which they were done. Used from one thread.
class RequestLog {
 public:
  void add(Remembered request) {
    requests_.push_back(std::move(request));
    if (requests_.size() > kRememberedMax) requests_.pop_front();
  }
  const std::deque<Remembered>& all() const { return requests_; }

 private:
  std::deque<Remembered> requests_;
};

struct RequestLogs {
  RequestLog control, data;
};

}  // namespace local_e2b
