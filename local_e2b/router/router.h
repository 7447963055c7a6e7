#pragma once

#include <memory>

#include "libs/aio/http_server.h"
#include "local_e2b/control/box_host.h"
#include "local_e2b/control/connections.h"
#include "local_e2b/control/fleet.h"
#include "local_e2b/control/request_log.h"
#include "local_e2b/faults/faults.h"
#include "local_e2b/router/route.h"

namespace local_e2b {

inline constexpr std::size_t kConnectionsPerSandboxMax = 1024;

// The data plane: carries requests to the ports inside running sandboxes.
class Router {
 public:
  Router(Fleet& fleet, BoxHost& host, Connections& connections, Faults& faults,
         RequestLog& requests, const base::Clock& clock)
      : fleet_(fleet),
        host_(host),
        connections_(connections),
        faults_(faults),
        requests_(requests),
        clock_(clock) {}

  aio::Task<> handle(std::shared_ptr<aio::HttpExchange> exchange);

 private:
  aio::Task<> route(std::shared_ptr<aio::HttpExchange> exchange, Destination to);
  // The running sandbox to go to, perhaps awakened; or the reply that says why there is none.
  aio::Task<std::variant<Sandbox, aio::HttpReply>> find_running(Destination to, aio::HttpHead head);
  aio::Task<> carry(std::shared_ptr<aio::HttpExchange> exchange, Sandbox sandbox, Destination to);

  Fleet& fleet_;
  BoxHost& host_;
  Connections& connections_;
  Faults& faults_;
  RequestLog& requests_;
  const base::Clock& clock_;
};

}  // namespace local_e2b
