#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>

#include "libs/aio/stream_layer.h"
#include "libs/aio/websocket_state.h"

namespace aio {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using Socket = asio::generic::stream_protocol::socket;

struct Asked {
  std::string host, target;
  HttpFields fields;
  std::string subprotocol;
};

base::Error refusal(const websocket::response_type& response) {
  namespace http = boost::beast::http;
  const bool denied = response.result() == http::status::unauthorized ||
                      response.result() == http::status::forbidden;
  return base::error(denied ? base::ErrorCode::kDenied : base::ErrorCode::kInvalid,
                     "WebSocket handshake: the server answered ",
                     std::to_string(response.result_int()));
}

template <typename Layer>
Task<base::Result<std::shared_ptr<WebSocket>>> ask(std::shared_ptr<WebSocketOver<Layer>> state,
                                                   Asked asked) {
  asked.fields.emplace_back(kSubprotocolField, asked.subprotocol);
  state->stream.set_option(websocket::stream_base::decorator(
      [fields = std::move(asked.fields)](websocket::request_type& request) {
        for (const auto& [name, value] : fields) request.set(name, value);
      }));
  websocket::response_type response;
  const auto [refused] = co_await state->stream.async_handshake(response, asked.host, asked.target,
                                                                WebSocketOver<Layer>::kAsTuple);
  if (refused == websocket::error::upgrade_declined) co_return refusal(response);
  if (refused) co_return websocket_failure("handshake", refused);
  if (response[kSubprotocolField] != asked.subprotocol)
    co_return base::error(base::ErrorCode::kInvalid, "the server does not speak ",
                          asked.subprotocol);
  co_return WebSocket::State::as_websocket(std::move(state));
}

}  // namespace

// Over its descriptor where it has one for the taking, else over the stream as it is.
Task<base::Result<std::shared_ptr<WebSocket>>> WebSocket::open(std::shared_ptr<Stream> stream,
                                                               std::string host, std::string target,
                                                               HttpFields fields,
                                                               WebSocketOptions options) {
  const Executor executor = co_await asio::this_coro::executor;
  Asked asked{std::move(host), std::move(target), std::move(fields), options.subprotocol};
  base::Fd fd = stream->release();
  if (!fd) {
    StreamLayer layer(executor, std::move(stream));
    co_return co_await ask(std::make_shared<WebSocketOver<StreamLayer>>(std::move(layer), options),
                           std::move(asked));
  }
  Socket socket(executor);
  boost::system::error_code failed;
  socket.assign(asio::generic::stream_protocol(AF_INET, 0), fd.get(), failed);
  if (failed) co_return websocket_failure("takes over", failed);
  fd.release();
  co_return co_await ask(std::make_shared<WebSocketOver<Socket>>(std::move(socket), options),
                         std::move(asked));
}

}  // namespace aio
