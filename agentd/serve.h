#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agentd/door/tcp_door.h"
#include "agentd/options.h"
#include "libs/metrics/registry.h"
#include "libs/net/server/http_server.h"

namespace agentd {

// /metrics, /healthz (it lives) and /readyz (`trouble`, called on a thread of the server's, is
// empty).
base::Result<std::unique_ptr<net::HttpServer>> serve_metrics(const Options& options,
                                                             metrics::Registry& registry,
                                                             std::function<std::string()> trouble);

// Logs the addresses, and writes them to the ready file when one is asked for.
base::Result<base::Done> say_ready(const Options& options, const net::HttpServer& server,
                                   const TcpDoor* tcp);

}  // namespace agentd
