#pragma once

#include <map>
#include <memory>
#include <string>

#include "libs/aio/http_server.h"
#include "libs/aio/stream.h"

namespace local_e2b {

// The data-plane connections of each sandbox, so that all of one can be cut at once: those with a
// request under way, and those to its own host that wait for their next one. One to a host that
// sandboxes share stays: its client may be sending the next sandbox's request on it just now.
class Connections {
 public:
  static constexpr std::size_t kIdleMax = 4096;  // As many as an HTTP server holds open.

  explicit Connections(std::size_t per_sandbox_max, std::size_t idle_max = kIdleMax)
      : per_sandbox_max_(per_sandbox_max), idle_max_(idle_max) {}

  // False when the sandbox has as many requests under way as it may. `remove` what was added.
  bool add(const std::string& id, const std::shared_ptr<aio::HttpExchange>& exchange);
  void remove(const std::string& id, const aio::HttpExchange& exchange, bool own_host);
  void cut(const std::string& id);
  std::size_t count(const std::string& id) const;  // Requests under way.
  std::size_t idle() const { return idle_.size(); }

 private:
  struct Idle {
    std::weak_ptr<aio::Stream> connection;
    std::string id;
  };

  const std::size_t per_sandbox_max_, idle_max_;
  std::map<std::string, std::map<const aio::HttpExchange*, std::weak_ptr<aio::HttpExchange>>> open_;
  std::map<const aio::Stream*, Idle> idle_;
};

}  // namespace local_e2b
