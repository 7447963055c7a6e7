#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"

namespace local_e2b {

// When each running sandbox's time is over, by the monotonic clock.
class Leases {
 public:
  void set(const std::string& id, base::Moment end);
  void remove(const std::string& id);
  std::optional<base::Moment> end_of(const std::string& id) const;
  std::optional<base::Moment> next() const;  // The earliest end.
  std::vector<std::string> take_due(base::Moment now);

 private:
  std::map<std::string, base::Moment> ends_;
  std::set<std::pair<base::Moment, std::string>> order_;
};

}  // namespace local_e2b
