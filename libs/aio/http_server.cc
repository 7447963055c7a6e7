#include "libs/aio/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "libs/aio/http_connections.h"
#include "libs/aio/http_exchange.h"
#include "libs/aio/http_message.h"
#include "libs/aio/loop.h"

namespace aio {

namespace asio = boost::asio;
using asio::ip::tcp;

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  State(Executor given, Handler handler, HttpLimits limits)
      : executor(given),
        handler(std::move(handler)),
        limits(limits),
        acceptor(given),
        connections(limits.connections_max),
        tasks(given) {}

  Task<> accept();
  void admit(tcp::socket socket);
  Task<> serve(std::shared_ptr<Stream> stream, std::string peer);

  Executor executor;
  Handler handler;
  HttpLimits limits;
  tcp::acceptor acceptor;
  OpenConnections connections;
  TaskGroup tasks;
};

namespace {

std::string refusal(int status) {
  return "HTTP/1.1 " + std::to_string(status) + " " + reason_phrase(status) +
         "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

int refusal_status(std::optional<HeadFault> fault) {
  if (!fault) return 408;
  if (*fault == HeadFault::kMalformed) return 400;
  if (*fault == HeadFault::kTooLarge) return 431;
  return 0;  // It is gone: nobody to tell.
}

// Tells the peer why it is not served, and reads on for a moment so that this is not lost to a
// reset.
Task<> refuse(Stream& stream, int status) {
  const std::string text = refusal(status);
  if (!co_await stream.write(text)) co_return;
  stream.close_write();
  char piece[4096];
  for (;;) {
    const auto got = co_await stream.read(piece, sizeof piece);
    if (!got || *got == 0) co_return;
  }
}

// The next request's head, or nothing when the connection is at its end.
Task<std::unique_ptr<MessageReader>> next_request(Stream& stream, Input& input, HttpLimits limits,
                                                  base::Milliseconds patience) {
  if (input.ready().empty()) {
    input.give_back();
    const auto arrived = co_await within(input.fill(), patience);
    if (!arrived || !*arrived || **arrived == 0) co_return nullptr;
  }
  auto reader = make_request_reader(limits.head_bytes_max);
  const auto fault = co_await within(reader->read_head(input), limits.head_timeout);
  if (fault == HeadFault::kNone) co_return std::move(reader);
  if (const int status = refusal_status(fault); status != 0)
    co_await race(refuse(stream, status), sleep_for(base::Milliseconds(1'000)));
  co_return nullptr;
}

std::string name_of(const tcp::socket& socket) {
  boost::system::error_code failed;
  const auto peer = socket.remote_endpoint(failed);
  if (failed) return "unknown";
  return peer.address().to_string() + ":" + std::to_string(peer.port());
}

}  // namespace

Task<> HttpServer::State::serve(std::shared_ptr<Stream> stream, std::string peer) {
  const auto self = shared_from_this();
  const auto input = std::make_shared<Input>(stream, limits.head_bytes_max + kPieceBytes);
  auto patience = std::min(limits.head_timeout, limits.idle_timeout);
  for (;;) {
    connections.waits(*stream);
    auto reader = co_await next_request(*stream, *input, limits, patience);
    if (!reader || !stream->open()) break;  // It may have had to make room just now.
    connections.works(*stream);
    patience = limits.idle_timeout;
    const auto exchange = std::make_shared<Exchange>(stream, input, std::move(reader), peer);
    co_await handler(exchange);
    if (co_await exchange->conclude()) continue;
    co_await exchange->linger();
    break;
  }
  stream->close();
  connections.remove(*stream);
}

void HttpServer::State::admit(tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::string peer = name_of(socket);
  base::Fd fd(socket.release());
  if (!connections.make_room()) {
    const std::string full = refusal(503);
    ::send(fd.get(), full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  auto stream = Stream::over(executor, std::move(fd));
  connections.add(stream);
  tasks.spawn(serve(std::move(stream), std::move(peer)));
}

Task<> HttpServer::State::accept() {
  const auto self = shared_from_this();
  while (acceptor.is_open()) {
    auto [failed, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (!acceptor.is_open() || failed == asio::error::operation_aborted) co_return;
    if (failed) {  // Out of descriptors, most likely: the next try must not spin.
      if (!connections.close_longest_waiting()) co_await sleep_for(base::Milliseconds(50));
      continue;
    }
    admit(std::move(socket));
  }
}

HttpLimits limits_within(std::size_t descriptors) {
  HttpLimits limits;
  limits.connections_max = std::clamp<std::size_t>(descriptors / 4, 1, limits.connections_max);
  return limits;
}

HttpServer::HttpServer(Executor executor, Handler handler, HttpLimits limits)
    : state_(std::make_shared<State>(std::move(executor), std::move(handler), limits)) {}

HttpServer::~HttpServer() { stop(); }

base::Result<int> HttpServer::listen(const std::string& address, int port) {
  const auto failure = [&](const boost::system::error_code& failed) {
    return base::error(base::ErrorCode::kUnavailable, "cannot listen on ", address, ":",
                       std::to_string(port), ": ", failed.message());
  };
  boost::system::error_code failed;
  const auto ip = asio::ip::make_address(address, failed);
  if (failed) return base::error(base::ErrorCode::kInvalid, "not an IP address: ", address);
  const tcp::endpoint endpoint(ip, static_cast<std::uint16_t>(port));
  auto& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return failure(failed);
  state_->tasks.spawn(state_->accept());
  return acceptor.local_endpoint(failed).port();
}

void HttpServer::stop() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  state_->connections.reset_all();
  state_->tasks.cancel();
}

}  // namespace aio
