#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "bench/contenders/echo.h"
#include "libs/base/fd.h"

namespace contenders {
namespace {

base::Fd unix_socket(const std::string& path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) give_up("too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

class Messages {
 public:
  explicit Messages(base::Fd socket)
      : socket_(std::move(socket)), held_(std::size_t{2} * kEchoBytesMax, '\0') {}

  bool send(std::string_view message) {
    while (!message.empty()) {
      const auto count = ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      message.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // Good until the next; empty at the end.
  std::string_view receive() {
    std::memmove(held_.data(), held_.data() + taken_, filled_ - taken_);
    filled_ -= std::exchange(taken_, 0);
    while (filled_ < sizeof(EchoHead) || filled_ < head_of(held_).bytes) {
      const auto count = ::recv(socket_.get(), held_.data() + filled_, held_.size() - filled_, 0);
      if (count <= 0) return {};
      filled_ += static_cast<std::size_t>(count);
    }
    taken_ = head_of(held_).bytes;
    return std::string_view(held_).substr(0, taken_);
  }

 private:
  base::Fd socket_;
  std::string held_;
  std::size_t filled_ = 0, taken_ = 0;
};

void serve(Messages link) {
  for (;;) {
    const auto message = link.receive();
    if (message.empty()) return;
    const EchoHead head = head_of(message);
    if (head.times == 0) continue;
    const std::string reply = echo_message({.bytes = head.reply_bytes});
    for (std::uint32_t i = 0; i < head.times; ++i)
      if (!link.send(reply)) return;
  }
}

std::int64_t once(Messages& link, const Exchange& exchange) {
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < exchange.sends; ++i)
    if (!link.send(nth_message(exchange, i))) give_up("the echo is gone");
  for (std::uint32_t i = 0; i < exchange.replies; ++i)
    if (link.receive().size() != exchange.reply_bytes) give_up("another echo came");
  return watch.nanoseconds();
}

}  // namespace

int serve_unix(const std::string& path) {
  sockaddr_un address{};
  const base::Fd listener = unix_socket(path, address);
  ::unlink(path.c_str());
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 8) != 0)
    give_up("cannot listen at " + path);
  for (;;) serve(Messages(base::Fd(::accept(listener.get(), nullptr, nullptr))));
}

int ask_unix(const std::string& path) {
  sockaddr_un address{};
  base::Fd socket = unix_socket(path, address);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    give_up("nobody listens at " + path);
  Messages link(std::move(socket));
  while (const auto command = next_command()) {
    const Exchange exchange = exchange_of(*command);
    std::vector<std::int64_t> took(command->times);
    for (std::int64_t& each : took) each = once(link, exchange);
    answer(took);
  }
  return 0;
}

}  // namespace contenders
