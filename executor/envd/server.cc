#include "executor/envd/server.h"

#include "executor/envd/rest.h"
#include "executor/envd/rpc.h"
#include "libs/base/crypto.h"

namespace executor {

bool needs_access_token(std::string_view method, std::string_view path) {
  if (path == "/health") return method != "GET";
  if (path == "/files") return method != "GET" && method != "POST";
  if (path == "/init") return method != "POST";
  return true;
}

aio::Task<> serve_envd(std::shared_ptr<Daemon> daemon,
                       std::shared_ptr<aio::HttpExchange> exchange) {
  const aio::HttpHead& head = exchange->head();
  const std::string path = head.path();
  const auto& token = daemon->settings.access_token;
  if (token && needs_access_token(head.method, path) &&
      !base::equal_secrets(head.field("X-Access-Token").value_or(""), *token)) {
    // A number as the code on every path, Connect's too: clients of this API rely on it.
    co_await reply_error(exchange, 401, "unauthorized access, please provide a valid access token");
    co_return;
  }
  if (const RpcMethod* method = find_rpc_method(path)) {
    co_await serve_rpc(daemon, exchange, *method);
  } else {
    co_await find_rest_handler(head.method, path)(daemon, exchange);
  }
}

}  // namespace executor
