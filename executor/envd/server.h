#pragma once

#include <memory>
#include <string_view>

#include "executor/envd/daemon.h"
#include "libs/aio/http_server.h"
#include "libs/aio/task.h"

namespace executor {

// E2B's daemon inside a sandbox: one request in, one reply out.
//   auth -> REST (rest.h) or a Connect call (rpc.h)
aio::Task<> serve_envd(std::shared_ptr<Daemon> daemon, std::shared_ptr<aio::HttpExchange> exchange);

// Whether the access token, once one is set, is asked of such a request before it is looked at.
bool needs_access_token(std::string_view method, std::string_view path);

}  // namespace executor
