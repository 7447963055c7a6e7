#include "libs/aio/stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "libs/aio/loop.h"

namespace aio {
namespace {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// What a stream may move before the rest of the loop has its turn: a peer that always has bytes
// ready, or room for them, makes nobody wait by itself. Many small pieces cost time too.
constexpr std::size_t kTurnBytes = 256u << 10;
constexpr std::size_t kTurnPieceBytes = kTurnBytes / 16;  // The least that one counts for.

void make_non_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

bool is_socket(int fd) {
  struct stat about{};
  return ::fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

// Its end is a reset then, after which nothing keeps its port.
void end_at_once(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool would_block(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

base::Error stream_error(const char* what, int error_number) {
  return base::error(base::ErrorCode::kUnavailable, what, ": ", std::strerror(error_number));
}

base::Error closed_here(const char* what) {
  return base::error(base::ErrorCode::kUnavailable, what, ": the connection was closed");
}

// What the stream and whoever waits on it share.
struct State {
  explicit State(const Executor& executor) : in(executor), out(executor) {}
  stream_descriptor in;
  stream_descriptor out;  // Unused when one descriptor carries both ways.
  bool both_ways = false;
  bool socket = false;
  bool write_closed = false;
  std::size_t moved = 0;  // In this turn, both ways.

  void count(ssize_t bytes) { moved += std::max(static_cast<std::size_t>(bytes), kTurnPieceBytes); }
  bool turn_is_over() const { return moved >= kTurnBytes; }

  // Before bytes are taken: a task that is cancelled meanwhile has lost none.
  Task<base::Result<base::Done>> give_way(const char* what) {
    moved = 0;
    co_await asio::post(in.get_executor(), asio::use_awaitable);
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      co_return base::error(base::ErrorCode::kCancelled, what, ": cancelled");
    co_return base::Done{};
  }

  stream_descriptor& writer() { return both_ways ? in : out; }

  Task<base::Result<base::Done>> wait(stream_descriptor& descriptor,
                                      stream_descriptor::wait_type until, const char* what) {
    const auto [failed] = co_await descriptor.async_wait(until, kAsTuple);
    if (!descriptor.is_open()) co_return closed_here(what);
    if (failed == asio::error::operation_aborted)
      co_return base::error(base::ErrorCode::kCancelled, what, ": cancelled");
    if (failed) co_return stream_error(what, failed.value());
    co_return base::Done{};
  }
};

class DescriptorStream final : public Stream {
 public:
  explicit DescriptorStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~DescriptorStream() override { end(); }

  Task<base::Result<std::size_t>> read(char* buffer, std::size_t size) override;
  Task<base::Result<base::Done>> write(std::string_view bytes) override;
  Task<base::Result<base::Done>> wait_readable() override;
  Task<base::Result<base::Done>> wait_urgent() override;
  void close_write() override;
  void close() override { end(); }
  void reset() override;
  base::Fd release() override;
  bool open() const override { return state_->in.is_open() || state_->out.is_open(); }
  int read_descriptor() const override {
    return state_->in.is_open() ? state_->in.native_handle() : -1;
  }

 private:
  void end();

  const std::shared_ptr<State> state_;
};

Task<base::Result<std::size_t>> DescriptorStream::read(char* buffer, std::size_t size) {
  const auto state = state_;
  for (;;) {
    if (state->turn_is_over()) CO_CHECK_OK(co_await state->give_way("read"));
    if (!state->in.is_open()) co_return closed_here("read");
    const auto got = ::read(state->in.native_handle(), buffer, size);
    if (got >= 0) {
      state->count(got);
      co_return static_cast<std::size_t>(got);
    }
    if (errno == EIO && !state->socket) co_return std::size_t{0};
    if (errno == EINTR) continue;
    if (!would_block(errno)) co_return stream_error("read", errno);
    CO_CHECK_OK(co_await state->wait(state->in, stream_descriptor::wait_read, "read"));
  }
}

Task<base::Result<base::Done>> DescriptorStream::wait_readable() {
  const auto state = state_;
  if (!state->in.is_open()) co_return closed_here("read");
  co_return co_await state->wait(state->in, stream_descriptor::wait_read, "read");
}

Task<base::Result<base::Done>> DescriptorStream::wait_urgent() {
  const auto state = state_;
  if (!state->in.is_open()) co_return closed_here("wait for a word");
  co_return co_await state->wait(state->in, stream_descriptor::wait_error, "wait for a word");
}

Task<base::Result<base::Done>> DescriptorStream::write(std::string_view bytes) {
  const auto state = state_;
  while (!bytes.empty()) {
    if (state->turn_is_over()) CO_CHECK_OK(co_await state->give_way("write"));
    auto& writer = state->writer();
    if (!writer.is_open() || state->write_closed) co_return closed_here("write");
    const int fd = writer.native_handle();
    const std::size_t piece = std::min(bytes.size(), kTurnBytes);
    const auto put = state->socket ? ::send(fd, bytes.data(), piece, MSG_NOSIGNAL)
                                   : ::write(fd, bytes.data(), piece);
    if (put >= 0) {
      state->count(put);
      bytes.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (!would_block(errno)) co_return stream_error("write", errno);
    CO_CHECK_OK(co_await state->wait(writer, stream_descriptor::wait_write, "write"));
  }
  co_return base::Done{};
}

void DescriptorStream::close_write() {
  boost::system::error_code ignored;
  state_->write_closed = true;
  if (!state_->both_ways) {
    state_->out.close(ignored);
  } else if (state_->socket && state_->in.is_open()) {
    ::shutdown(state_->in.native_handle(), SHUT_WR);
  }
}

void DescriptorStream::end() {
  boost::system::error_code ignored;
  state_->in.close(ignored);
  state_->out.close(ignored);
}

void DescriptorStream::reset() {
  if (state_->socket && state_->in.is_open()) end_at_once(state_->in.native_handle());
  end();
}

base::Fd DescriptorStream::release() {
  return base::Fd(state_->both_ways && state_->in.is_open() ? state_->in.release() : -1);
}

// Of one of both families.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage); }
};

base::Result<Address> address_of(const std::string& text, int port) {
  Address address;
  const in_port_t number = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, text.c_str(), &address.v4().sin_addr) == 1) {
    address.v4().sin_family = AF_INET;
    address.v4().sin_port = number;
    address.size = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, text.c_str(), &address.v6().sin6_addr) == 1) {
    address.v6().sin6_family = AF_INET6;
    address.v6().sin6_port = number;
    address.size = sizeof(sockaddr_in6);
  } else {
    return base::error(base::ErrorCode::kInvalid, "not an IP address: ", text);
  }
  return address;
}

// At a port where nobody listens, a socket of the same machine may be given that very port to leave
// from, and then reaches itself.
bool is_connected_to_itself(int fd) {
  Address own, peer;
  return ::getsockname(fd, own.get(), &own.size) == 0 &&
         ::getpeername(fd, peer.get(), &peer.size) == 0 && own.size == peer.size &&
         std::memcmp(&own.storage, &peer.storage, own.size) == 0;
}

Task<base::Result<base::Done>> wait_connected(stream_descriptor& descriptor) {
  const auto [failed] = co_await descriptor.async_wait(stream_descriptor::wait_write, kAsTuple);
  if (failed) co_return stream_error("wait for the connection", failed.value());
  int error_number = 0;
  socklen_t size = sizeof error_number;
  ::getsockopt(descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) co_return stream_error("connect", error_number);
  co_return base::Done{};
}

}  // namespace

std::shared_ptr<Stream> Stream::over(Executor executor, base::Fd both_ways) {
  auto state = std::make_shared<State>(std::move(executor));
  make_non_blocking(both_ways.get());
  state->both_ways = true;
  state->socket = is_socket(both_ways.get());
  state->in.assign(both_ways.release());
  return std::make_shared<DescriptorStream>(std::move(state));
}

std::shared_ptr<Stream> Stream::over(Executor executor, base::Fd in, base::Fd out) {
  auto state = std::make_shared<State>(std::move(executor));
  if (in) {
    make_non_blocking(in.get());
    state->in.assign(in.release());
  }
  if (out) {
    make_non_blocking(out.get());
    state->out.assign(out.release());
  }
  return std::make_shared<DescriptorStream>(std::move(state));
}

Task<base::Result<std::shared_ptr<Stream>>> connect(base::Fd socket, std::string address, int port,
                                                    base::Milliseconds timeout) {
  CO_TRY(const Address to, address_of(address, port));
  const Executor executor = co_await asio::this_coro::executor;
  make_non_blocking(socket.get());
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), to.get(), to.size) != 0) {
    if (errno != EINPROGRESS) co_return stream_error("connect", errno);
    stream_descriptor waiting(executor, socket.get());
    const auto connected = co_await within(wait_connected(waiting), timeout);
    waiting.release();
    if (!connected)
      co_return base::error(base::ErrorCode::kUnavailable, "connect: no answer within ",
                            std::to_string(timeout.count()), " ms");
    if (!*connected) co_return connected->error();
  }
  if (is_connected_to_itself(socket.get())) {
    end_at_once(socket.get());
    co_return stream_error("connect", ECONNREFUSED);
  }
  co_return Stream::over(executor, std::move(socket));
}

Task<base::Result<std::shared_ptr<Stream>>> connect(std::string address, int port,
                                                    base::Milliseconds timeout) {
  CO_TRY(const Address to, address_of(address, port));
  base::Fd socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) co_return stream_error("make a socket", errno);
  co_return co_await connect(std::move(socket), std::move(address), port, timeout);
}

}  // namespace aio
