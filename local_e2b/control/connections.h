#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libs/aio/http_server.h"

namespace local_e2b {

// The data-plane connections that are open to each sandbox, so that all of one can be cut at once.
class Connections {
 public:
  explicit Connections(std::size_t per_sandbox_max) : per_sandbox_max_(per_sandbox_max) {}

  // False when the sandbox has as many as it may. `remove` what was added.
  bool add(const std::string& id, std::shared_ptr<aio::HttpExchange> exchange) {
    auto& open = open_[id];
    if (open.size() >= per_sandbox_max_) return false;
    open[exchange.get()] = exchange;
    return true;
  }
  void remove(const std::string& id, const aio::HttpExchange* exchange) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    found->second.erase(exchange);
    if (found->second.empty()) open_.erase(found);
  }
  void cut(const std::string& id) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    const auto open = std::move(found->second);
    open_.erase(found);
    for (const auto& [key, weak] : open)
      if (const auto exchange = weak.lock()) exchange->abort();
  }
  std::size_t count(const std::string& id) const {
    const auto found = open_.find(id);
    return found == open_.end() ? 0 : found->second.size();
  }

 private:
  const std::size_t per_sandbox_max_;
  std::map<std::string, std::map<const aio::HttpExchange*, std::weak_ptr<aio::HttpExchange>>> open_;
};

}  // namespace local_e2b
