#pragma once

#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/wire/client/connection.h"

namespace cli {

// Why nothing moves, for a person who watches: that there is no link, once that has been so for a
// while, and that there is one again.
class CutNews {
 public:
  static constexpr base::Seconds kUntoldFor{2};  // Shorter cuts are nobody's business.

  explicit CutNews(bool watched) : watched_(watched) {}

  std::optional<std::string> look(const wire::Connection& connection, base::Moment now);
  // When to look at the latest.
  base::Moment next_moment(const wire::Connection& connection) const;

 private:
  bool watched_, told_ = false;
};

}  // namespace cli
