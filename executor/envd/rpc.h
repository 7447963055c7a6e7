#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "executor/envd/connect.h"
#include "executor/envd/daemon.h"
#include "executor/files/entry.h"
#include "libs/aio/http_server.h"
#include "libs/aio/task.h"

// The part of envd's API that is Connect calls (connect.h): a table from names to functions.
namespace executor {

// One call, once its head was understood.
struct RpcCall {
  std::shared_ptr<Daemon> daemon;
  User user;
  base::Json message;  // Empty for a stream of the client's.
  std::optional<base::Moment> deadline;
  std::optional<base::Milliseconds> timeout;
  base::Milliseconds keepalive{};
};

// The messages that a stream sends.
class RpcReplies {
 public:
  explicit RpcReplies(std::shared_ptr<aio::HttpExchange> exchange)
      : exchange_(std::move(exchange)) {}
  // Waits while the peer does not read; kUnavailable when it has left.
  aio::Task<base::Result<base::Done>> send(base::Json message);

 private:
  std::shared_ptr<aio::HttpExchange> exchange_;
};

// The messages that a stream receives.
class RpcMessages {
 public:
  explicit RpcMessages(std::shared_ptr<aio::HttpExchange> exchange)
      : exchange_(std::move(exchange)) {}
  aio::Task<RpcResult<std::optional<base::Json>>> next();  // Nothing at the end.

 private:
  std::shared_ptr<aio::HttpExchange> exchange_;
  EnvelopeReader reader_;
  bool ended_ = false;
};

using RpcUnary = aio::Task<RpcResult<base::Json>> (*)(RpcCall);
using RpcServerStream = aio::Task<RpcResult<base::Done>> (*)(RpcCall, RpcReplies&);
using RpcClientStream = aio::Task<RpcResult<base::Json>> (*)(RpcCall, RpcMessages&);

struct RpcMethod {
  std::string_view path;  // "/package.Service/Method"
  std::variant<RpcUnary, RpcServerStream, RpcClientStream> call;
};

const RpcMethod* find_rpc_method(std::string_view path);
aio::Task<> serve_rpc(std::shared_ptr<Daemon> daemon, std::shared_ptr<aio::HttpExchange> exchange,
                      const RpcMethod& method);

// "user:" of a Basic Authorization header; nothing when there is no such header. kDenied when it
// cannot be read.
base::Result<std::optional<std::string>> basic_user(const std::optional<std::string>& header);

// rpc_filesystem.cc
aio::Task<RpcResult<base::Json>> rpc_stat(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_make_dir(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_move(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_list_dir(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_remove(RpcCall call);
RpcError rpc_error(const FileError& error);
base::Json to_json(const Entry& entry);
RpcResult<std::string> path_at(const RpcCall& call, std::string_view field);
// rpc_watch.cc
aio::Task<RpcResult<base::Done>> rpc_watch_dir(RpcCall call, RpcReplies& replies);
aio::Task<RpcResult<base::Json>> rpc_create_watcher(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_get_watcher_events(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_remove_watcher(RpcCall call);
// rpc_process.cc
aio::Task<RpcResult<base::Json>> rpc_list(RpcCall call);
aio::Task<RpcResult<base::Done>> rpc_start(RpcCall call, RpcReplies& replies);
aio::Task<RpcResult<base::Done>> rpc_connect(RpcCall call, RpcReplies& replies);
aio::Task<RpcResult<base::Json>> rpc_update(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_send_input(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_stream_input(RpcCall call, RpcMessages& messages);
aio::Task<RpcResult<base::Json>> rpc_send_signal(RpcCall call);
aio::Task<RpcResult<base::Json>> rpc_close_stdin(RpcCall call);

}  // namespace executor
