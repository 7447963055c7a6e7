#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <string>
#include <utility>

#include "libs/aio/websocket.h"

// Private to libs/aio.
namespace aio {

inline constexpr char kSubprotocolField[] = "Sec-WebSocket-Protocol";

inline base::Error websocket_failure(const char* what, const boost::system::error_code& failed) {
  namespace websocket = boost::beast::websocket;
  const auto closed = make_error_code(websocket::error::closed);
  const bool peers_fault = failed.category() == closed.category() && failed != closed;
  return base::error(peers_fault ? base::ErrorCode::kInvalid : base::ErrorCode::kUnavailable,
                     "WebSocket ", what, ": ", failed.message());
}

struct WebSocket::State {
  virtual ~State() = default;
  virtual Task<base::Result<std::string>> read() = 0;
  virtual Task<base::Result<base::Done>> write(std::string message) = 0;
  // While it holds, what is too small for a packet of its own waits for what comes next. Tells the
  // kernel so, where there is one that knows how.
  virtual void hold(bool on) = 0;
  virtual void reset() = 0;

  static std::shared_ptr<WebSocket> as_websocket(std::shared_ptr<State> state) {
    return std::shared_ptr<WebSocket>(new WebSocket(std::move(state)));
  }
};

// Beast's WebSocket over a connection of some kind.
template <typename Layer>
struct WebSocketOver final : WebSocket::State, std::enable_shared_from_this<WebSocketOver<Layer>> {
  static constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);
  static constexpr std::size_t kKeptBytes = 64u << 10;  // Of what a large message took.
  // Who asks for a WebSocket masks what it sends (RFC 6455 §5.3), so many bytes at a time, each
  // time with a system call. It keeps room for that.
  static constexpr std::size_t kMaskedBytes = 16u << 10;

  WebSocketOver(Layer layer, const WebSocketOptions& options) : stream(std::move(layer)) {
    using boost::beast::websocket::stream_base;
    stream_base::timeout timeout{};
    timeout.handshake_timeout = options.handshake_within;
    timeout.idle_timeout = stream_base::none();  // Whoever uses it sees to that.
    stream.set_option(timeout);
    stream.read_message_max(options.message_bytes_max);
    stream.auto_fragment(false);
    stream.write_buffer_bytes(kMaskedBytes);
    stream.binary(true);
  }

  Task<base::Result<std::string>> read() override {
    const auto self = this->shared_from_this();
    const auto [failed, count] = co_await stream.async_read(held, kAsTuple);
    if (failed) co_return websocket_failure("read", failed);
    if (!stream.got_binary())
      co_return base::error(base::ErrorCode::kInvalid, "WebSocket read: a text message");
    std::string message = boost::beast::buffers_to_string(held.data());
    held.consume(count);
    if (held.capacity() > kKeptBytes) held = {};
    co_return message;
  }

  Task<base::Result<base::Done>> write(std::string message) override {
    const auto self = this->shared_from_this();
    const auto [failed, count] =
        co_await stream.async_write(boost::asio::buffer(message), kAsTuple);
    if (failed) co_return websocket_failure("write", failed);
    co_return base::Done{};
  }

  void hold(bool on) override {
    if constexpr (requires { stream.next_layer().native_handle(); }) {
      const int value = on ? 1 : 0;
      ::setsockopt(stream.next_layer().native_handle(), IPPROTO_TCP, TCP_CORK, &value,
                   sizeof value);
    }
  }

  void reset() override {
    boost::system::error_code ignored;
    stream.next_layer().close(ignored);
  }

  boost::beast::websocket::stream<Layer, false> stream;
  boost::beast::flat_buffer held;
};

}  // namespace aio
