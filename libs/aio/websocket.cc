#include "libs/aio/websocket.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "libs/aio/http_message.h"
#include "libs/base/strings.h"

namespace aio {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Socket = asio::generic::stream_protocol::socket;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kKeptBytes = 64u << 10;  // Of what a large message took.
constexpr char kSubprotocol[] = "Sec-WebSocket-Protocol";

base::Error failure_of(const char* what, const boost::system::error_code& failed) {
  const auto closed = make_error_code(websocket::error::closed);
  const bool peers_fault = failed.category() == closed.category() && failed != closed;
  return base::error(peers_fault ? base::ErrorCode::kInvalid : base::ErrorCode::kUnavailable,
                     "WebSocket ", what, ": ", failed.message());
}

// Whether it stands in the client's list of those it speaks.
bool offers(const HttpHead& head, const std::string& subprotocol) {
  for (const auto& offered : base::split(head.field(kSubprotocol).value_or(""), ','))
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

struct WebSocket::State {
  State(Socket socket, const WebSocketOptions& options) : stream(std::move(socket)) {
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = options.handshake_within;
    timeout.idle_timeout = websocket::stream_base::none();  // Whoever uses it sees to that.
    stream.set_option(timeout);
    stream.read_message_max(options.message_bytes_max);
    stream.auto_fragment(false);
    stream.binary(true);
  }
  websocket::stream<Socket, false> stream;
  beast::flat_buffer held;
};

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
  if (failed) co_return failure_of("takes over", failed);
  taken.fd.release();
  auto state = std::make_shared<State>(std::move(socket), options);
  state->stream.set_option(websocket::stream_base::decorator(
      [name = options.subprotocol](websocket::response_type& response) {
        response.set(kSubprotocol, name);
      }));
  const auto [refused] = co_await state->stream.async_accept(request, kAsTuple);
  if (refused) co_return failure_of("handshake", refused);
  co_return std::shared_ptr<WebSocket>(new WebSocket(std::move(state)));
}

Task<base::Result<std::shared_ptr<WebSocket>>> WebSocket::open(std::shared_ptr<Stream> stream,
                                                               std::string host, std::string target,
                                                               HttpFields fields,
                                                               WebSocketOptions options) {
  Socket socket(co_await asio::this_coro::executor);
  base::Fd fd = stream->release();
  boost::system::error_code failed;
  socket.assign(asio::generic::stream_protocol(AF_INET, 0), fd.get(), failed);
  if (failed) co_return failure_of("takes over", failed);
  fd.release();
  auto state = std::make_shared<State>(std::move(socket), options);
  fields.emplace_back(kSubprotocol, options.subprotocol);
  state->stream.set_option(
      websocket::stream_base::decorator([fields](websocket::request_type& request) {
        for (const auto& [name, value] : fields) request.set(name, value);
      }));
  websocket::response_type response;
  const auto [refused] = co_await state->stream.async_handshake(response, host, target, kAsTuple);
  if (refused) co_return failure_of("handshake", refused);
  if (response[kSubprotocol] != options.subprotocol)
    co_return base::error(base::ErrorCode::kInvalid, "the server does not speak ",
                          options.subprotocol);
  co_return std::shared_ptr<WebSocket>(new WebSocket(std::move(state)));
}

Task<base::Result<std::string>> WebSocket::read() {
  const auto state = state_;
  const auto [failed, count] = co_await state->stream.async_read(state->held, kAsTuple);
  if (failed) co_return failure_of("read", failed);
  if (!state->stream.got_binary())
    co_return base::error(base::ErrorCode::kInvalid, "WebSocket read: a text message");
  std::string message = beast::buffers_to_string(state->held.data());
  state->held.consume(count);
  if (state->held.capacity() > kKeptBytes) state->held = {};
  co_return message;
}

Task<base::Result<base::Done>> WebSocket::write(std::string message) {
  const auto state = state_;
  const auto [failed, count] = co_await state->stream.async_write(asio::buffer(message), kAsTuple);
  if (failed) co_return failure_of("write", failed);
  co_return base::Done{};
}

void WebSocket::reset() {
  boost::system::error_code ignored;
  state_->stream.next_layer().close(ignored);
}

}  // namespace aio
