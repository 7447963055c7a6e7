#include "libs/net/server/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/strings.h"

namespace net {
namespace {

constexpr base::Milliseconds kLookAgain{20};  // Whether a daemon's connections have ended.
// GnuTLS's word for what RFC 9325 asks for.
constexpr const char* kTlsPriorities = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// Cuts connections that outlive their patience. The library's own time limit starts anew with every
// byte, so a client that sends one now and then would hold its place for ever.
class Reaper {
 public:
  explicit Reaper(base::Milliseconds patience)
      : patience_(patience), thread_([this](std::stop_token stop) { run(stop); }) {}

  // The connection of `fd` must reach its next step within the patience from now.
  void expect(int fd) {
    std::lock_guard lock(mutex_);
    deadlines_[fd] = clock_.now() + patience_;
  }
  // It is the handler's turn, which takes the time it takes.
  void exempt(int fd) {
    std::lock_guard lock(mutex_);
    deadlines_.erase(fd);
  }

 private:
  void run(const std::stop_token& stop) {
    const auto step = std::max(patience_ / 8, base::Milliseconds(1));
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, step, [&] { return stop.stop_requested(); })) {
      const auto now = clock_.now();
      std::erase_if(deadlines_, [now](const auto& entry) {
        if (now < entry.second) return false;
        ::shutdown(entry.first, SHUT_RDWR);  // Its own thread wakes, and closes it.
        return true;
      });
    }
  }

  base::SystemClock clock_;
  const base::Milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<int, base::Moment> deadlines_;
  std::jthread thread_;  // Last: it uses all of the above.
};

struct Exchange {
  ServedRequest request;
  bool oversized = false;
};

int socket_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : static_cast<int>(info->connect_fd);
}

std::string text_of(const sockaddr* from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address =
      from->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(from)->sin_addr);
  ::inet_ntop(from->sa_family, address, text.data(), text.size());
  return text.data();
}

void tell_who_asks(MHD_Connection* connection, ServedRequest& request) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return;
  if (info->client_addr->sa_family != AF_UNIX) {
    request.client = text_of(info->client_addr);
  } else if (auto peer = base::peer_of(socket_of(connection))) {
    request.peer = *std::move(peer);
  }
}

bool is_same_socket(int one, int other) {
  struct stat first{}, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

MHD_Result send(MHD_Connection* connection, const ServedAnswer& answer) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  if (answer.retry_after)
    MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
                            std::to_string(answer.retry_after->count()).c_str());
  const auto queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

base::Result<sockaddr_storage> parse_address(const std::string& address, std::uint16_t port) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return storage;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return storage;
  }
  return base::error(base::ErrorCode::kInvalid, "cannot listen on \"", address,
                     "\": give an IPv4 or IPv6 address, such as 127.0.0.1");
}

}  // namespace

struct HttpServer::State {
  ServerOptions options;
  ServedHandler handler;
  Reaper reaper;
  base::Fd listener;
  MHD_Daemon* daemon = nullptr;

  State(const ServerOptions& wanted, ServedHandler handle)
      : options(wanted), handler(std::move(handle)), reaper(wanted.patience) {}

  MHD_Result take(MHD_Connection* connection, Exchange& exchange, const char* data,
                  std::size_t* bytes);
  ServedAnswer answer(const Exchange& exchange) const;
  base::Result<base::Done> listen();
  base::Result<MHD_Daemon*> serve();

  // The library's callbacks.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char* data,
                               std::size_t* bytes, void** exchange);
  static void on_completed(void* self, MHD_Connection* connection, void** exchange,
                           MHD_RequestTerminationCode why);
  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode what);
};

ServedAnswer HttpServer::State::answer(const Exchange& exchange) const {
  if (exchange.oversized) return {413, "the body is too large\n"};
  return handler(exchange.request);
}

// Called once per piece of the body, and with none when it has ended.
MHD_Result HttpServer::State::take(MHD_Connection* connection, Exchange& exchange, const char* data,
                                   std::size_t* bytes) {
  if (*bytes > 0) {
    exchange.oversized |= exchange.request.body.size() + *bytes > options.body_bytes_max;
    if (!exchange.oversized) exchange.request.body.append(data, *bytes);
    *bytes = 0;
    return MHD_YES;
  }
  const int fd = socket_of(connection);
  reaper.exempt(fd);
  const ServedAnswer made = answer(exchange);
  reaper.expect(fd);
  return send(connection, made);
}

MHD_Result HttpServer::State::on_request(void* self, MHD_Connection* connection, const char* path,
                                         const char* method, const char*, const char* data,
                                         std::size_t* bytes, void** exchange) {
  if (*exchange == nullptr) {  // The head has arrived; the body, if any, follows.
    const bool head = std::strcmp(method, "HEAD") == 0;
    const char* told =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    auto begun = std::make_unique<Exchange>();
    begun->request = {.method = head ? "GET" : method,
                      .path = path,
                      .authorization = told == nullptr ? "" : told};
    tell_who_asks(connection, begun->request);
    *exchange = begun.release();
    return MHD_YES;
  }
  return static_cast<State*>(self)->take(connection, *static_cast<Exchange*>(*exchange), data,
                                         bytes);
}

void HttpServer::State::on_completed(void* self, MHD_Connection* connection, void** exchange,
                                     MHD_RequestTerminationCode) {
  delete static_cast<Exchange*>(*exchange);
  *exchange = nullptr;
  // The connection may idle for the next request.
  static_cast<State*>(self)->reaper.expect(socket_of(connection));
}

void HttpServer::State::on_connection(void* self, MHD_Connection* connection, void**,
                                      MHD_ConnectionNotificationCode what) {
  auto& reaper = static_cast<State*>(self)->reaper;
  const int fd = socket_of(connection);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) reaper.expect(fd);
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) reaper.exempt(fd);  // Before the number is used again.
}

base::Result<base::Done> HttpServer::State::listen() {
  TRY(auto address, parse_address(options.address, options.port));
  const auto failure = [&] {
    return base::error(base::ErrorCode::kUnavailable, "cannot listen on ", options.address, ":",
                       std::to_string(options.port), ": ", std::strerror(errno));
  };
  listener = base::Fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) return failure();
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0)
    return failure();
  TRY(daemon, serve());
  return base::Done{};
}

// A daemon on the listening socket, with the certificate of now.
base::Result<MHD_Daemon*> HttpServer::State::serve() {
  const unsigned seconds =
      static_cast<unsigned>(std::chrono::ceil<base::Seconds>(options.patience).count());
  unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
  // Read once, when the daemon starts.
  std::vector<MHD_OptionItem> items;
  if (options.identity) {
    flags |= MHD_USE_TLS;
    items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, options.identity->certificate.data()});
    items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, options.identity->key.data()});
    items.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)});
  }
  items.push_back({MHD_OPTION_END, 0, nullptr});
  // It closes its socket when it stops.
  base::Fd own(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0));
  MHD_Daemon* started = MHD_start_daemon(
      flags, 0, nullptr, nullptr, &State::on_request, this, MHD_OPTION_LISTEN_SOCKET, own.get(),
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(options.connections_max),
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, static_cast<unsigned>(options.connections_each_max),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, options.head_bytes_max, MHD_OPTION_CONNECTION_TIMEOUT,
      seconds, MHD_OPTION_NOTIFY_COMPLETED, &State::on_completed, this,
      MHD_OPTION_NOTIFY_CONNECTION, &State::on_connection, this, MHD_OPTION_THREAD_STACK_SIZE,
      std::size_t{1} << 20, MHD_OPTION_ARRAY, items.data(), MHD_OPTION_END);
  if (started != nullptr) {
    (void)own.release();
    return started;
  }
  // Some of its failures close the socket, and others do not; another may have the number since.
  if (!is_same_socket(own.get(), listener.get())) (void)own.release();
  return base::error(base::ErrorCode::kUnavailable, "cannot serve on ", options.address,
                     options.identity ? ": its certificate or key does not fit" : "");
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { MHD_stop_daemon(state_->daemon); }

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(const ServerOptions& options,
                                                            ServedHandler handler) {
  auto state = std::make_unique<State>(options, std::move(handler));
  CHECK_OK(state->listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

base::Result<std::unique_ptr<HttpServer>> HttpServer::start_on(base::Fd listener,
                                                               const ServerOptions& options,
                                                               ServedHandler handler) {
  auto state = std::make_unique<State>(options, std::move(handler));
  state->options.address = "a Unix socket";
  state->listener = std::move(listener);
  TRY(state->daemon, state->serve());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

std::uint16_t HttpServer::port() const {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(state_->listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  if (bound.ss_family == AF_UNIX) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

base::Result<base::Done> HttpServer::renew(const base::Certified& identity,
                                           const std::stop_token& stop) {
  auto before = std::exchange(state_->options.identity, identity);
  const auto renewed = state_->serve();
  if (!renewed) {
    state_->options.identity = std::move(before);
    return renewed.error();
  }
  MHD_Daemon* const old = std::exchange(state_->daemon, *renewed);
  const base::Fd unused(MHD_quiesce_daemon(old));
  const auto until = base::SystemClock().now() + state_->options.patience;
  while (MHD_get_daemon_info(old, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections > 0 &&
         base::SystemClock().now() < until && !stop.stop_requested())
    std::this_thread::sleep_for(kLookAgain);
  MHD_stop_daemon(old);
  return base::Done{};
}

}  // namespace net
