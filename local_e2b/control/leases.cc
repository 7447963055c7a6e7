#include "local_e2b/control/leases.h"

namespace local_e2b {

void Leases::set(const std::string& id, base::Moment end) {
  remove(id);
  ends_[id] = end;
  order_.emplace(end, id);
}

void Leases::remove(const std::string& id) {
  const auto found = ends_.find(id);
  if (found == ends_.end()) return;
  order_.erase({found->second, id});
  ends_.erase(found);
}

std::optional<base::Moment> Leases::end_of(const std::string& id) const {
  const auto found = ends_.find(id);
  if (found == ends_.end()) return std::nullopt;
  return found->second;
}

std::optional<base::Moment> Leases::next() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

std::vector<std::string> Leases::take_due(base::Moment now) {
  std::vector<std::string> due;
  while (!order_.empty() && order_.begin()->first <= now) {
    due.push_back(order_.begin()->second);
    remove(due.back());
  }
  return due;
}

}  // namespace local_e2b
