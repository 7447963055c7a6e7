#include "libs/net/cpprest/cpprest_transport.h"

#include <cstdlib>
#include <deque>
#include <future>
#include <set>

#include "libs/base/strings.h"
#include "libs/net/cpprest/cpprest_exchange.h"
#include "libs/net/cpprest/proxy.h"
#include "libs/net/cpprest/tls_material.h"

namespace net {
namespace {

using base::ErrorCode;
using base::Moment;
using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;
using web::http::client::http_client_config;
using Shared = std::shared_ptr<CpprestExchange>;

// cpprestsdk is free of data races only when it has one thread and every call into it is made
// there. Nothing else in the process uses it, so its pool is ours to size.
boost::asio::io_service& library_thread() {
  static auto& service = []() -> auto& {
    crossplat::threadpool::initialize_with_threads(1);
    return crossplat::threadpool::shared_instance().service();
  }();
  return service;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::size_t size_of(const Headers& headers) {
  std::size_t bytes = 0;
  for (const Header& header : headers.all()) bytes += header.name.size() + header.value.size() + 4;
  return bytes;
}

// The library's own complaint would repeat what may be secret.
web::uri uri_of(const std::string& text, const char* refusal) try {
  return web::uri(text);
} catch (const web::uri_exception&) {
  throw std::invalid_argument(refusal);
}

http_request request_of(const Shared& exchange, const web::uri& url, const std::string& agent) {
  const Request& asked = *exchange->request;
  http_request made(asked.method);
  made.set_request_uri(web::uri_builder().set_path(url.path()).set_query(url.query()).to_uri());
  if (asked.source || !asked.body.empty()) {
    const concurrency::streams::streambuf<std::uint8_t> bytes(std::make_shared<UpStream>(exchange));
    const auto size = asked.source ? asked.source_bytes : asked.body.size();
    if (size)
      made.set_body(bytes.create_istream(), *size);
    else
      made.set_body(bytes.create_istream());
    made.headers().remove("Content-Type");  // Nobody asked for the library's own.
  }
  made.headers().add("User-Agent", agent);
  for (const Header& header : asked.headers.all()) {
    if (base::equal_ignoring_case(header.name, "User-Agent")) made.headers().remove(header.name);
    made.headers().add(header.name, header.value);
  }
  const concurrency::streams::streambuf<std::uint8_t> sink(std::make_shared<DownStream>(exchange));
  made.set_response_stream(sink.create_ostream());
  // Called for the first time when the head has been written.
  made.set_progress_handler(
      [exchange](web::http::message_direction::direction, auto) { exchange->depart(); });
  return made;
}

// Method, URL and headers with what the library adds.
std::size_t head_bytes_of(const Request& request) {
  return request.method.size() + request.url.size() + size_of(request.headers) + 512;
}

web::web_proxy proxy_to(const std::string& text) {
  constexpr const char* kRefusal = "the proxy is not a plain HTTP one without a user";
  const bool whole = text.find("://") != std::string::npos;
  const web::uri proxy = uri_of(whole ? text : "http://" + text, kRefusal);
  if (proxy.scheme() != "http" || !proxy.user_info().empty()) throw std::invalid_argument(kRefusal);
  constexpr int kUsualPort = 1080;  // libcurl's.
  return web::web_proxy(web::uri_builder()
                            .set_scheme("http")
                            .set_host(proxy.host())
                            .set_port(proxy.port() > 0 ? proxy.port() : kUsualPort)
                            .to_uri());
}

// Drives every exchange of one transport, on the library's thread alone.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  explicit Engine(ConnectionOptions options) : options_(std::move(options)) {
    auto material =
        TlsMaterial::from_pem(options_.ca_bundle, options_.client_certificate, options_.client_key);
    if (material)
      tls_ = std::make_shared<const TlsMaterial>(*std::move(material));
    else
      tls_trouble_ = material.error().message;
  }

  void obey(Exchange::Order order, const Shared& exchange) {
    if (order == Exchange::Order::kAdd) return add(exchange);
    if (exchange->ended) return;
    switch (order) {
      case Exchange::Order::kCancel:
        return break_off(exchange, exchange->failure(ErrorCode::kCancelled, "cancelled"));
      case Exchange::Order::kEnough:
        return finish(exchange, std::move(exchange->response));
      default:
        exchange->read_paused = exchange->write_paused = false;
        if (exchange->mode == Exchange::Mode::kStream) exchange->wait_anew();
        exchange->go_on_putting();
        exchange->go_on_getting();
    }
  }

  void close() {
    closed_ = true;
    while (!live_.empty()) {
      const Shared exchange = *live_.begin();
      finish(exchange, exchange->failure(ErrorCode::kCancelled, "shutting down"));
    }
    idle_.clear();
  }

  // Nothing of a connection is left, neither here nor in the library.
  bool has_unwound() {
    std::erase_if(seats_, [](const std::weak_ptr<Seat>& seat) { return seat.expired(); });
    return seats_.empty();
  }

 private:
  void add(const Shared& exchange) {
    live_.insert(exchange);
    if (closed_) return finish(exchange, exchange->failure(ErrorCode::kCancelled, "shutting down"));
    if (auto objection = objection_to(*exchange->request))
      return finish(exchange, *std::move(objection));
    exchange->timer.emplace(library_thread());
    exchange->wait_anew();
    arm(exchange);
    waiting_.push_back(exchange);
    begin_waiting();
  }

  void begin_waiting() {
    while (!waiting_.empty() && busy_ < std::size_t(options_.connections_max)) {
      const Shared next = std::move(waiting_.front());
      waiting_.pop_front();
      begin(next, next->request->fresh_connection);
    }
  }

  void begin(const Shared& exchange, bool fresh) {
    try {
      const web::uri url =
          uri_of(exchange->request->url, "the URL has what must be percent-encoded");
      if (!url.user_info().empty() || url.host().starts_with('['))
        throw std::invalid_argument("a user or an IPv6 address in a URL is not supported");
      exchange->lane = lane_to(url, fresh);
      ++busy_;
      exchange->lane->seat->exchange = exchange;
      const http_request request = request_of(exchange, url, options_.user_agent);
      exchange->sent =
          !exchange->lane->seat->tls && head_bytes_of(*exchange->request) > kHeadBytesAtOnce;
      exchange->connect_by = present_moment() + options_.connect_timeout;
      arm(exchange);
      exchange->lane->client->request(request, exchange->cancel.get_token())
          .then([self = shared_from_this(), exchange](const pplx::task<http_response>& head) {
            self->on_head(exchange, head);
          });
    } catch (const std::exception& refused) {
      finish(exchange, exchange->failure(ErrorCode::kInvalid, refused.what()));
    }
  }

  // --- Connections.

  Lane lane_to(const web::uri& url, bool fresh) {
    const std::string origin = web::uri_builder()
                                   .set_scheme(url.scheme())
                                   .set_host(url.host())
                                   .set_port(url.port())
                                   .to_string();
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const Lane& lane) { return lane.origin == origin; });
    if (!fresh && found != idle_.rend()) {
      Lane lane = std::move(*found);
      idle_.erase(std::next(found).base());
      return lane;
    }
    if (!idle_.empty() && busy_ + idle_.size() >= std::size_t(options_.connections_max))
      idle_.pop_front();
    return new_lane(origin, url);
  }

  Lane new_lane(const std::string& origin, const web::uri& url) {
    const std::string proxy =
        options_.proxy ? *options_.proxy : proxy_from(environment, url.scheme(), url.host());
    auto seat = std::make_shared<Seat>();
    seat->tls = url.scheme() == "https";
    seat->tunnelled = seat->tls && !proxy.empty();
    seat->server_name = options_.tls_server_name.empty() ? url.host() : options_.tls_server_name;
    seat->cut = [self = weak_from_this()](Shared exchange) {
      library_thread().post([self, exchange = std::move(exchange)] {
        if (const auto engine = self.lock()) engine->cut(exchange);
      });
    };
    http_client_config config;
    config.set_max_redirects(0);
    config.set_timeout(std::chrono::hours(24 * 365));  // An idle timer; ours are kept by `arm`.
    config.set_nativehandle_options([seat](void* handle) { seat->before_departure(handle); });
    if (!proxy.empty()) config.set_proxy(proxy_to(proxy));
    if (seat->tls) set_tls(config, seat);
    has_unwound();  // Forgets those that have.
    seats_.push_back(seat);
    return {origin, seat, std::make_unique<http_client>(origin, config)};
  }

  void set_tls(http_client_config& config, const std::shared_ptr<Seat>& seat) const {
    if (!tls_) throw std::invalid_argument(tls_trouble_);
    config.set_validate_certificates(options_.verify_server);
    config.set_tlsext_sni_enabled(false);  // The seat sees to it.
    config.set_ssl_context_callback([seat, tls = tls_](boost::asio::ssl::context& context) {
      tls->give_to(context.native_handle());
      seat->listen_to(context.native_handle());
    });
  }

  void give_back(Lane lane) {
    if (closed_ || lane.seat->tunnelled || options_.connections_kept == 0) return;
    idle_.push_back(std::move(lane));
    if (idle_.size() > std::size_t(options_.connections_kept)) idle_.pop_front();
  }

  // --- Time.

  void arm(const Shared& exchange) {
    const Moment next = exchange->connected ? exchange->deadline
                                            : std::min(exchange->deadline, exchange->connect_by);
    exchange->timer->expires_at(next);
    exchange->timer->async_wait(
        [self = shared_from_this(), exchange](const boost::system::error_code& moved) {
          if (!moved && !exchange->ended) self->on_time(exchange);
        });
  }

  void on_time(const Shared& exchange) {
    const Moment present = present_moment();
    if (exchange->is_waiting_for_caller()) exchange->wait_anew();
    if (exchange->deadline <= present) return break_off(exchange, exchange->overdue());
    if (!exchange->connected && exchange->connect_by <= present)
      return break_off(exchange, exchange->failure(
                                     ErrorCode::kUnavailable,
                                     "no connection within " +
                                         std::to_string(options_.connect_timeout.count()) + " ms"));
    arm(exchange);
  }

  // --- What became of it.

  void on_head(const Shared& exchange, const pplx::task<http_response>& head) {
    http_response response;
    try {
      response = head.get();
    } catch (const StaleConnection&) {
      return exchange->ended ? void() : begin_anew(exchange);
    } catch (const std::exception& trouble) {
      return fail(exchange, trouble.what());
    }
    if (exchange->ended) return;

    exchange->response.status = response.status_code();
    for (const auto& [name, value] : response.headers())
      exchange->response.headers.add(name, value);
    if (exchange->response.status < 200)  // The library stops reading here.
      return fail(exchange, "an interim reply, " + std::to_string(exchange->response.status));
    if (!exchange->allows_head_of(size_of(exchange->response.headers))) return cut(exchange);
    const auto length = exchange->response.headers.find("Content-Length");
    if (length && !base::parse_integer(*length))
      return fail(exchange, "the reply's Content-Length is no number");
    // The library leaves trailers unread.
    exchange->lane_is_good = !exchange->response.headers.find("Trailer");

    exchange->head_seen = true;
    if (exchange->mode == Exchange::Mode::kStream) exchange->show_head();
    exchange->go_on_putting();
    response.content_ready().then(
        [self = shared_from_this(), exchange](const pplx::task<http_response>& whole) {
          self->on_end(exchange, whole);
        });
  }

  void on_end(const Shared& exchange, const pplx::task<http_response>& whole) {
    try {
      whole.get();
    } catch (const std::exception& trouble) {
      return fail(exchange, std::string(trouble.what()) + " (the reply broke off)");
    }
    if (exchange->ended) return;
    Lane lane = *std::exchange(exchange->lane, std::nullopt);
    --busy_;
    lane.seat->exchange.reset();
    if (exchange->lane_is_good) give_back(std::move(lane));
    finish(exchange, std::move(exchange->response));
  }

  // Nothing had been written to the connection that proved dead.
  void begin_anew(const Shared& exchange) {
    exchange->lane.reset();
    --busy_;
    begin(exchange, true);
  }

  void break_off(const Shared& exchange, Failure why) {
    if (!exchange->objection) exchange->objection = std::move(why);
    cut(exchange);
  }

  // Ends an exchange with its objection. A write that has succeeded reports so first: it is in the
  // queue of this thread already, and what it says decides over `sent`.
  void cut(const Shared& exchange) {
    exchange->cancel.cancel();
    library_thread().post([self = shared_from_this(), exchange] { self->fail(exchange, {}); });
  }

  void fail(const Shared& exchange, std::string why) {
    if (exchange->ended) return;
    if (!exchange->tls_trouble.empty()) why += " (" + exchange->tls_trouble + ")";
    Failure failure = exchange->objection ? *std::move(exchange->objection)
                                          : exchange->failure(ErrorCode::kUnavailable, why);
    failure.sent = exchange->sent;
    finish(exchange, std::move(failure));
  }

  // From here on the caller's request may be gone. A connection that is still there is closed. The
  // exchange is taken by value: what named it may be among what it leaves.
  void finish(Shared exchange, Reply reply) {
    exchange->end();
    if (exchange->timer) exchange->timer->cancel();
    if (exchange->lane) {
      exchange->cancel.cancel();
      exchange->lane.reset();
      --busy_;
    } else {
      std::erase(waiting_, exchange);
    }
    live_.erase(exchange);
    exchange->settle(std::move(reply));
    if (!waiting_.empty())
      library_thread().post([self = shared_from_this()] { self->begin_waiting(); });
  }

  const ConnectionOptions options_;
  std::shared_ptr<const TlsMaterial> tls_;  // Or why not.
  std::string tls_trouble_;
  std::set<Shared> live_;
  std::deque<Shared> waiting_;              // For a connection.
  std::deque<Lane> idle_;                   // The longest unused first.
  std::vector<std::weak_ptr<Seat>> seats_;  // Of each connection that the library may still hold.
  std::size_t busy_ = 0;                    // Connections in use.
  bool closed_ = false;
};

// What is cut off unwinds in steps that the library queues one after another, or queues once a
// thread of asio has looked a name up. What is not done at the end of the process would leak.
constexpr base::Milliseconds kUnwindingMax{2000};
constexpr int kLastSteps = 64;  // After the last connection is gone.

void after_steps(int steps, std::function<void()> then) {
  if (steps == 0) return then();
  library_thread().post([=] { after_steps(steps - 1, then); });
}

class CpprestTransport final : public ExchangeTransport {
 public:
  explicit CpprestTransport(ConnectionOptions options)
      : engine_(std::make_shared<Engine>(std::move(options))) {}

  ~CpprestTransport() override {
    const Moment give_up_at = present_moment() + kUnwindingMax;
    std::promise<void> closed;
    library_thread().post([&] {
      engine_->close();
      when_unwound(give_up_at, [&] {
        // The thread ends after OpenSSL has, so what OpenSSL keeps for it would leak.
        OPENSSL_thread_stop();
        closed.set_value();
      });
    });
    closed.get_future().wait();
  }

 private:
  std::shared_ptr<Exchange> new_exchange() override { return std::make_shared<CpprestExchange>(); }

  void order(Exchange::Order kind, std::shared_ptr<Exchange> exchange) override {
    library_thread().post([engine = engine_, kind,
                           exchange = std::static_pointer_cast<CpprestExchange>(
                               std::move(exchange))] { engine->obey(kind, exchange); });
  }

  void when_unwound(Moment give_up_at, std::function<void()> then) {
    if (engine_->has_unwound() || present_moment() >= give_up_at)
      return after_steps(kLastSteps, std::move(then));
    look_again_.expires_after(base::Milliseconds(1));
    look_again_.async_wait(
        [=, this](const boost::system::error_code&) { when_unwound(give_up_at, then); });
  }

  const std::shared_ptr<Engine> engine_;
  boost::asio::steady_timer look_again_{library_thread()};
};

}  // namespace

std::unique_ptr<Transport> cpprest_transport(ConnectionOptions options) {
  return std::make_unique<CpprestTransport>(std::move(options));
}

}  // namespace net
