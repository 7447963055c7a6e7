#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "bench/contenders/echo.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/aio/websocket.h"

namespace contenders {
namespace {

using Socket = std::shared_ptr<aio::WebSocket>;

const aio::WebSocketOptions kOptions{.subprotocol = "echo.1", .message_bytes_max = kEchoBytesMax};

aio::Task<> echo(std::shared_ptr<aio::HttpExchange> exchange) {
  const auto socket = co_await aio::WebSocket::accept(std::move(exchange), kOptions);
  if (!socket) co_return;
  for (;;) {
    const auto message = co_await (*socket)->read();
    if (!message) co_return;
    const EchoHead head = head_of(*message);
    if (head.times == 0) continue;
    const std::string reply = echo_message({.bytes = head.reply_bytes});
    for (std::uint32_t i = 0; i < head.times; ++i)
      if (!co_await (*socket)->write(reply)) co_return;
  }
}

aio::Task<int> serve(aio::Executor executor, int port) {
  aio::HttpServer server(executor, echo);
  if (const auto listening = server.listen("127.0.0.1", port); !listening)
    give_up(listening.error().message);
  co_return co_await aio::wait_for_signal({SIGTERM});
}

aio::Task<> exchange_once(Socket socket, Exchange exchange) {
  for (std::uint64_t i = 0; i < exchange.sends; ++i)
    if (!co_await socket->write(nth_message(exchange, i))) give_up("the echo is gone");
  for (std::uint32_t i = 0; i < exchange.replies; ++i) {
    const auto reply = co_await socket->read();
    if (!reply || reply->size() != exchange.reply_bytes) give_up("another echo came");
  }
}

aio::Task<int> ask(WebPlace place) {
  auto stream = co_await aio::connect(place.address, place.port, base::Milliseconds(5'000));
  if (!stream) give_up(stream.error().message);
  aio::HttpFields fields = {{"E2b-Sandbox-Id", place.sandbox_id},
                            {"E2b-Sandbox-Port", place.port_inside}};
  if (!place.traffic_token.empty())
    fields.emplace_back("E2b-Traffic-Access-Token", place.traffic_token);
  const auto socket = co_await aio::WebSocket::open(*std::move(stream), place.address, "/",
                                                    std::move(fields), kOptions);
  if (!socket) give_up(socket.error().message);
  // Nothing else is on this loop, so it may block until it is told something.
  while (const auto command = next_command()) {
    const Exchange exchange = exchange_of(*command);
    std::vector<std::int64_t> took(command->times);
    for (std::int64_t& each : took) {
      const Stopwatch watch;
      co_await exchange_once(*socket, exchange);
      each = watch.nanoseconds();
    }
    answer(took);
  }
  co_return 0;
}

}  // namespace

int serve_web(int port) {
  aio::Loop loop;
  return loop.run(serve(loop.executor(), port));
}

int ask_web(const WebPlace& place) {
  aio::Loop loop;
  return loop.run(ask(place));
}

}  // namespace contenders
