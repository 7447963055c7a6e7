#include "libs/aio/websocket.h"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>

#include "libs/aio/http_message.h"
#include "libs/aio/websocket_state.h"
#include "libs/base/strings.h"

namespace aio {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using Socket = asio::generic::stream_protocol::socket;

// Whether it stands in the client's list of those it speaks.
bool offers(const HttpHead& head, const std::string& subprotocol) {
  for (const auto& offered : base::split(head.field(kSubprotocolField).value_or(""), ','))
    if (base::trim(offered) == subprotocol) return true;
  return false;
}

websocket::request_type as_request(const HttpHead& head) {
  websocket::request_type request;
  request.method_string(head.method);
  request.target(head.target);
  request.version(11);
  for (const auto& [name, value] : head.fields) request.insert(name, value);
  return request;
}

}  // namespace

WebSocket::WebSocket(std::shared_ptr<State> state) : state_(std::move(state)) {}
WebSocket::~WebSocket() { reset(); }

Task<base::Result<std::shared_ptr<WebSocket>>> WebSocket::accept(
    std::shared_ptr<HttpExchange> exchange, WebSocketOptions options) {
  const HttpHead head = exchange->head();
  if (!asks_for_upgrade(head.fields) || !offers(head, options.subprotocol)) {
    const std::string wanted = options.subprotocol;
    HttpReply reply{
        426, {{"Upgrade", "websocket"}}, "a WebSocket of " + wanted + " is spoken here\n"};
    CO_CHECK_OK(co_await exchange->reply(std::move(reply)));
    co_return base::error(base::ErrorCode::kInvalid, "not a request for a WebSocket of ", wanted);
  }
  CO_TRY(auto taken, exchange->take_connection());
  if (!taken.ahead.empty())  // RFC 6455 §4.1: a client waits for the answer.
    co_return base::error(base::ErrorCode::kInvalid, "the client did not wait for the answer");
  const websocket::request_type request = as_request(head);
  Socket socket(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  socket.assign(asio::generic::stream_protocol(AF_INET, 0), taken.fd.get(), failed);
  if (failed) co_return websocket_failure("takes over", failed);
  taken.fd.release();
  auto state = std::make_shared<WebSocketOver<Socket>>(std::move(socket), options);
  state->stream.set_option(websocket::stream_base::decorator(
      [name = options.subprotocol](websocket::response_type& response) {
        response.set(kSubprotocolField, name);
      }));
  const auto [refused] =
      co_await state->stream.async_accept(request, WebSocketOver<Socket>::kAsTuple);
  if (refused) co_return websocket_failure("handshake", refused);
  co_return State::as_websocket(std::move(state));
}

Task<base::Result<std::string>> WebSocket::read() { return state_->read(); }
Task<base::Result<base::Done>> WebSocket::write(std::string message) {
  return state_->write(std::move(message));
}
Task<base::Result<base::Done>> WebSocket::write_all(std::vector<std::string> messages) {
  const auto state = state_;
  const bool several = messages.size() > 1;
  if (several) state->hold(true);
  for (std::string& message : messages) CO_CHECK_OK(co_await state->write(std::move(message)));
  if (several) state->hold(false);
  co_return base::Done{};
}
void WebSocket::reset() { state_->reset(); }

}  // namespace aio
