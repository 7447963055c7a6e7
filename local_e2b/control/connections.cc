#include "local_e2b/control/connections.h"

namespace local_e2b {

bool Connections::add(const std::string& id, const std::shared_ptr<aio::HttpExchange>& exchange) {
  auto& open = open_[id];
  if (open.size() >= per_sandbox_max_) return false;
  open[exchange.get()] = exchange;
  // Whichever sandbox it carried a request to before.
  idle_.erase(exchange->connection().lock().get());
  return true;
}

void Connections::remove(const std::string& id, const aio::HttpExchange& exchange, bool own_host) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.erase(&exchange) == 0) return;  // It was cut.
  if (found->second.empty()) open_.erase(found);
  const auto connection = exchange.connection().lock();
  if (!connection || !own_host) return;
  if (idle_.size() >= idle_max_)
    std::erase_if(idle_, [](const auto& each) { return each.second.connection.expired(); });
  if (idle_.size() < idle_max_) idle_[connection.get()] = {connection, id};
}

void Connections::cut(const std::string& id) {
  if (auto open = open_.extract(id))
    for (const auto& [key, weak] : open.mapped())
      if (const auto exchange = weak.lock()) exchange->abort();
  std::erase_if(idle_, [&](const auto& each) {
    if (each.second.id != id) return false;
    if (const auto connection = each.second.connection.lock()) connection->reset();
    return true;
  });
}

std::size_t Connections::count(const std::string& id) const {
  const auto found = open_.find(id);
  return found == open_.end() ? 0 : found->second.size();
}

}  // namespace local_e2b
