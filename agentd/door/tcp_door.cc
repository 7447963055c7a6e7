#include "agentd/door/tcp_door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agentd/door/accept.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/message.h"

namespace agentd {
namespace {

constexpr std::size_t kFileBytesMax = 1u << 20;
constexpr std::size_t kTokenBytesMin = 16;

base::Result<base::Fd> listen_at(const std::string& address, std::uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return base::error(base::ErrorCode::kInvalid, "not an IP address: ", address);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, &::freeaddrinfo);
  base::Fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return base::error(base::ErrorCode::kUnavailable, "cannot listen on ", address, ":",
                       std::to_string(port), ": ", std::strerror(errno));
  return socket;
}

// "[::1]:4711", with the port of both kinds at the same place.
std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown";
  return (std::strchr(host, ':') ? "[" + std::string(host) + "]" : host) + std::string(":") + port;
}

base::Result<std::string> read_token(const std::filesystem::path& path) {
  TRY(const std::string text, base::read_file(path, kFileBytesMax));
  std::string token(base::trim(text));
  if (token.size() < kTokenBytesMin || token.size() > wire::kTokenBytesMax)
    return base::error(base::ErrorCode::kInvalid, path.string(), ": a token has ",
                       std::to_string(kTokenBytesMin), " to ", std::to_string(wire::kTokenBytesMax),
                       " bytes");
  return token;
}

}  // namespace

TcpDoor::TcpDoor(aio::Executor executor, TcpDoorSettings settings, Serve serve)
    : executor_(executor),
      settings_(std::move(settings)),
      serve_(std::move(serve)),
      handshakes_(std::move(executor)) {}

base::Result<std::unique_ptr<TcpDoor>> TcpDoor::at(aio::Executor executor, TcpDoorSettings settings,
                                                   Serve serve) {
  std::unique_ptr<TcpDoor> door(
      new TcpDoor(std::move(executor), std::move(settings), std::move(serve)));
  CHECK_OK(door->read_files());
  TRY(door->listener_, listen_at(door->settings_.address, door->settings_.port));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(door->listener_.get(), reinterpret_cast<sockaddr*>(&own), &size);
  door->port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
  return door;
}

base::Result<base::Done> TcpDoor::read_files() {
  looked_ = base::SystemClock().now();
  if (!settings_.token.empty()) {
    TRY(token_, read_token(settings_.token));
  }
  aio::TlsServer::Options read;
  TRY(read.identity.certificate, base::read_file(settings_.certificate, kFileBytesMax));
  TRY(read.identity.key, base::read_file(settings_.key, kFileBytesMax));
  if (!settings_.client_authorities.empty()) {
    TRY(read.client_authorities, base::read_file(settings_.client_authorities, kFileBytesMax));
  }
  const bool same = tls_ && read.identity == shown_.identity &&
                    read.client_authorities == shown_.client_authorities;
  if (same) return base::Done{};
  TRY(tls_, aio::TlsServer::with(read));
  shown_ = std::move(read);
  return base::Done{};
}

// Strangers come as often as they like: they cause few looks, and a line for each other trouble.
void TcpDoor::follow_files() {
  if (base::SystemClock().now() - looked_ < settings_.look) return;
  const auto read = read_files();
  const std::string trouble = read ? "" : read.error().message;
  if (trouble == std::exchange(trouble_, trouble)) return;
  if (read)
    base::log::info("the files of the TCP listener are good again");
  else
    base::log::warn("the files of the TCP listener are no good, what they said before holds",
                    {{"error", read.error()}});
}

aio::Task<> TcpDoor::open() {
  base::Fd listener(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
  co_await accept_all(executor_, std::move(listener),
                      [this](base::Fd connection) { admit(std::move(connection)); });
}

void TcpDoor::admit(base::Fd connection) {
  if (handshakes_.size() >= kHandshakesMax) return;
  const int on = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return;
  follow_files();
  handshakes_.spawn(
      shake_hands(aio::Stream::over(executor_, std::move(connection)), name_of(peer, size)));
}

aio::Task<> TcpDoor::shake_hands(std::shared_ptr<aio::Stream> stream, std::string from) {
  const aio::TlsServer tls = *tls_;
  auto secured = co_await tls.secure(std::move(stream), kHandshakeWithin);
  if (!secured) {
    base::log::debug("a connection was not secured", {{"peer", from}, {"error", secured.error()}});
    co_return;
  }
  if (secured->client) from += " " + base::on_one_line(secured->client->common_name);
  serve_(std::move(secured->stream), {.name = std::move(from), .token = token_});
}

}  // namespace agentd
