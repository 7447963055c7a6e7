#include "executor/envd/rpc.h"

#include "executor/envd/proto_json.h"
#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::size_t kChunkBytes = 64u << 10;

const RpcMethod kMethods[] = {
    {"/filesystem.Filesystem/Stat", rpc_stat},
    {"/filesystem.Filesystem/MakeDir", rpc_make_dir},
    {"/filesystem.Filesystem/Move", rpc_move},
    {"/filesystem.Filesystem/ListDir", rpc_list_dir},
    {"/filesystem.Filesystem/Remove", rpc_remove},
    {"/filesystem.Filesystem/WatchDir", rpc_watch_dir},
    {"/filesystem.Filesystem/CreateWatcher", rpc_create_watcher},
    {"/filesystem.Filesystem/GetWatcherEvents", rpc_get_watcher_events},
    {"/filesystem.Filesystem/RemoveWatcher", rpc_remove_watcher},
    {"/process.Process/List", rpc_list},
    {"/process.Process/Start", rpc_start},
    {"/process.Process/Connect", rpc_connect},
    {"/process.Process/Update", rpc_update},
    {"/process.Process/SendInput", rpc_send_input},
    {"/process.Process/StreamInput", rpc_stream_input},
    {"/process.Process/SendSignal", rpc_send_signal},
    {"/process.Process/CloseStdin", rpc_close_stdin},
};

using Exchange = std::shared_ptr<aio::HttpExchange>;

RpcError deadline_exceeded() {
  return {RpcCode::kDeadlineExceeded, "the deadline of the call has passed"};
}

// What the head says of a call, apart from its message.
RpcResult<RpcCall> read_head(std::shared_ptr<Daemon> daemon, const aio::HttpHead& head) {
  TRY(const auto timeout, parse_timeout(head.field("Connect-Timeout-Ms")));
  const auto name = basic_user(head.field("Authorization"));
  if (!name) return RpcError(RpcCode::kUnauthenticated, name.error().message);
  auto user = daemon->user_called(*name);
  if (!user) return RpcError(RpcCode::kUnauthenticated, user.error().message);
  RpcCall call;
  call.daemon = std::move(daemon);
  call.user = *std::move(user);
  call.timeout = timeout;
  if (timeout) call.deadline = base::SystemClock().now() + *timeout;
  call.keepalive = parse_keepalive(head.field("Keepalive-Ping-Interval"));
  if (timeout && timeout->count() == 0) return deadline_exceeded();
  return call;
}

aio::Task<> reply_unary(Exchange exchange, RpcResult<base::Json> result) {
  aio::HttpReply reply{200, {{"Content-Type", "application/json"}}, {}};
  if (result) {
    reply.body = base::to_text(*result);
  } else {
    reply.status = http_status(result.error().rpc_code);
    reply.body = base::to_text(to_json(result.error()));
  }
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

aio::Task<RpcResult<base::Json>> call_unary(std::shared_ptr<Daemon> daemon, Exchange exchange,
                                            RpcUnary unary) {
  CO_TRY(RpcCall call, read_head(std::move(daemon), exchange->head()));
  const auto body = co_await exchange->read_all(kEnvelopeBytesMax);
  if (!body) co_return RpcError(RpcCode::kResourceExhausted, body.error().message);
  CO_TRY(call.message, parse_message(*body));
  if (!call.timeout) co_return co_await unary(std::move(call));
  const base::Milliseconds timeout = *call.timeout;
  auto result = co_await aio::within(unary(std::move(call)), timeout);
  if (!result) co_return deadline_exceeded();
  co_return *std::move(result);
}

// The streams' replies are 200 whatever comes of the call; the end of the stream tells.
aio::Task<bool> begin_stream(Exchange exchange) {
  aio::HttpFields fields = {{"Content-Type", "application/connect+json"},
                            {"X-Accel-Buffering", "no"}};
  const auto begun = co_await exchange->begin(200, std::move(fields));
  co_return begun.ok();
}

aio::Task<> end_stream(Exchange exchange, std::optional<RpcError> error) {
  if (co_await exchange->write(end_envelope(error))) static_cast<void>(co_await exchange->finish());
}

// The one message that opens a server stream, with what the head says of the call. Read to the end
// of the body before anything is answered: a client that hears of an answer while it still sends
// may cut its message short.
aio::Task<RpcResult<RpcCall>> read_call(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  CO_TRY(RpcCall call, read_head(std::move(daemon), exchange->head()));
  RpcMessages messages(exchange);
  CO_TRY(std::optional<base::Json> message, co_await messages.next());
  if (!message) co_return RpcError(RpcCode::kInvalidArgument, "the request holds no message");
  CO_TRY(const auto more, co_await messages.next());
  if (more)
    co_return RpcError(RpcCode::kInvalidArgument, "the request holds more than one message");
  call.message = *std::move(message);
  co_return call;
}

aio::Task<> run_stream(Exchange exchange, RpcServerStream stream, RpcCall call) {
  RpcReplies replies(exchange);
  const auto done = co_await stream(std::move(call), replies);
  std::optional<RpcError> error;
  if (!done) error = done.error();
  co_await end_stream(exchange, error);
}

aio::Task<> serve_server_stream(std::shared_ptr<Daemon> daemon, Exchange exchange,
                                RpcServerStream stream) {
  auto call = co_await read_call(std::move(daemon), exchange);
  if (!co_await begin_stream(exchange)) co_return;
  if (!call) co_return co_await end_stream(exchange, call.error());
  // A stream may have nothing to say for long; only this tells that nobody listens any more. Not
  // before the message is here: a connection has one reader at a time.
  co_await aio::race(run_stream(exchange, std::move(stream), *std::move(call)),
                     exchange->wait_for_disconnect());
}

aio::Task<RpcResult<base::Json>> call_client_stream(std::shared_ptr<Daemon> daemon,
                                                    Exchange exchange, RpcClientStream stream) {
  CO_TRY(RpcCall call, read_head(std::move(daemon), exchange->head()));
  RpcMessages messages(exchange);
  if (!call.timeout) co_return co_await stream(std::move(call), messages);
  const base::Milliseconds timeout = *call.timeout;
  auto result = co_await aio::within(stream(std::move(call), messages), timeout);
  if (!result) co_return deadline_exceeded();
  co_return *std::move(result);
}

aio::Task<> serve_client_stream(std::shared_ptr<Daemon> daemon, Exchange exchange,
                                RpcClientStream stream) {
  const auto result = co_await call_client_stream(std::move(daemon), exchange, stream);
  if (!co_await begin_stream(exchange)) co_return;
  std::optional<RpcError> error;
  if (result) {
    if (!co_await exchange->write(encode_envelope(0, base::to_text(*result)))) co_return;
  } else {
    error = result.error();
  }
  co_await end_stream(exchange, error);
}

}  // namespace

const RpcMethod* find_rpc_method(std::string_view path) {
  for (const RpcMethod& method : kMethods)
    if (method.path == path) return &method;
  return nullptr;
}

base::Result<std::optional<std::string>> basic_user(const std::optional<std::string>& header) {
  constexpr std::string_view kScheme = "basic ";
  if (!header) return std::optional<std::string>();
  if (base::lower(header->substr(0, kScheme.size())) != kScheme)
    return std::optional<std::string>();  // Another scheme is not about who the user is.
  const auto decoded = base::from_base64(base::trim(header->substr(kScheme.size())));
  if (!decoded)
    return base::error(base::ErrorCode::kDenied, "the Authorization header cannot be read");
  return std::optional(decoded->substr(0, decoded->find(':')));
}

aio::Task<base::Result<base::Done>> RpcReplies::send(base::Json message) {
  co_return co_await exchange_->write(encode_envelope(0, base::to_text(message)));
}

aio::Task<RpcResult<std::optional<base::Json>>> RpcMessages::next() {
  for (;;) {
    CO_TRY(auto envelope, reader_.next());
    if (envelope) {
      if (envelope->flags & kEnvelopeEnd) co_return std::optional<base::Json>();
      CO_TRY(base::Json message, parse_message(envelope->payload));
      co_return std::optional<base::Json>(std::move(message));
    }
    if (ended_) {
      if (reader_.empty()) co_return std::optional<base::Json>();
      co_return RpcError(RpcCode::kInvalidArgument, "the last message is cut short");
    }
    std::string bytes(kChunkBytes, '\0');
    const auto got = co_await exchange_->read(bytes.data(), bytes.size());
    if (!got) co_return RpcError(RpcCode::kInvalidArgument, got.error().message);
    ended_ = *got == 0;
    reader_.add(std::string_view(bytes).substr(0, *got));
  }
}

aio::Task<> serve_rpc(std::shared_ptr<Daemon> daemon, std::shared_ptr<aio::HttpExchange> exchange,
                      const RpcMethod& method) {
  const aio::HttpHead& head = exchange->head();
  const auto* unary = std::get_if<RpcUnary>(&method.call);
  const RpcContent wanted = unary ? RpcContent::kUnary : RpcContent::kStream;
  if (head.method != "POST") {
    aio::HttpReply reply{405, {{"Allow", "POST"}}, {}};
    static_cast<void>(co_await exchange->reply(std::move(reply)));
  } else if (content_kind(head.field("Content-Type")) != wanted) {
    aio::HttpReply reply{
        415, {{"Accept-Post", unary ? "application/json" : "application/connect+json"}}, {}};
    static_cast<void>(co_await exchange->reply(std::move(reply)));
  } else if (unary) {
    co_await reply_unary(exchange, co_await call_unary(daemon, exchange, *unary));
  } else if (const auto* stream = std::get_if<RpcServerStream>(&method.call)) {
    co_await serve_server_stream(daemon, exchange, *stream);
  } else {
    co_await serve_client_stream(daemon, exchange, std::get<RpcClientStream>(method.call));
  }
}

}  // namespace executor
