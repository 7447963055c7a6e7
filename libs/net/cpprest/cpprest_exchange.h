#pragma once

#include <cpprest/http_client.h>
#include <poll.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "libs/base/certificate.h"
#include "libs/net/exchange.h"

// One request on cpprestsdk: the streams that carry its bytes, and what is seen of its connection.
// Costly to compile; included by the transport alone.
namespace net {

// What the library may have read beyond the head or the chunk that it waits for.
inline constexpr std::size_t kReadAheadBytesMax = 128u << 10;
// A head that a new connection takes in one write, so that it leaves wholly or not at all.
inline constexpr std::size_t kHeadBytesAtOnce = 8u << 10;

// Thrown through the library to end a request; the exchange knows why.
struct BrokenOff : std::exception {
  const char* what() const noexcept override { return "the connection closed before an answer"; }
};
// The pooled connection had died before anything was written to it.
struct StaleConnection : BrokenOff {};

struct Seat;

// One connection of ours: a client of the library that is given one request at a time, so that
// what happens on its connection is known to be about that request.
struct Lane {
  std::string origin;
  std::shared_ptr<Seat> seat;
  std::unique_ptr<web::http::client::http_client> client;
};

struct CpprestExchange : Exchange {
  using Count = pplx::task<std::size_t>;
  using Counted = pplx::task_completion_event<std::size_t>;

  pplx::cancellation_token_source cancel;
  std::optional<boost::asio::steady_timer> timer;
  std::optional<Lane> lane;  // From its turn to its end.
  bool ended = false;
  bool connected = false;
  base::Moment connect_by = base::Moment::max();
  int departures = 0;
  bool head_seen = false, lane_is_good = true;
  std::size_t uploaded = 0;      // Of a body that is a string.
  std::size_t unseen_bytes = 0;  // Came over TLS since the library last passed something on.
  std::string tls_trouble;
  std::optional<Counted> put_done, get_done;  // What the library waits for.
  std::size_t put_size = 0;
  std::string_view unpassed;
  std::uint8_t* get_into = nullptr;
  std::size_t get_size = 0;

  // The request, or its first bytes, may have left.
  void depart() { sent = connected = true; }

  // --- What the streams ask.

  Count put(std::string_view bytes) {
    if (ended) return pplx::task_from_exception<std::size_t>(BrokenOff());
    unseen_bytes = 0;
    if (mode == Mode::kWhole)
      return keep(bytes) ? pplx::task_from_result(bytes.size())
                         : pplx::task_from_exception<std::size_t>(BrokenOff());
    put_done.emplace();
    put_size = bytes.size();
    unpassed = bytes;
    const Count done(*put_done);
    go_on_putting();
    return done;
  }

  // A large chunk goes in pieces, as the caller takes them.
  void go_on_putting() {
    constexpr std::size_t kPiece = 64u << 10;
    if (!put_done || !head_seen) return;
    while (!unpassed.empty()) {
      const std::string_view piece = unpassed.substr(0, kPiece);
      if (!pass_on(piece)) return;
      unpassed.remove_prefix(piece.size());
    }
    std::exchange(put_done, std::nullopt)->set(put_size);
  }

  Count get(std::uint8_t* buffer, std::size_t size) {
    if (ended) return pplx::task_from_exception<std::size_t>(BrokenOff());
    if (!request->source) {
      const std::size_t copied =
          request->body.copy(reinterpret_cast<char*>(buffer), size, uploaded);
      uploaded += copied;
      return pplx::task_from_result(copied);
    }
    get_done.emplace();
    get_into = buffer;
    get_size = size;
    const Count done(*get_done);
    go_on_getting();
    return done;
  }

  void go_on_getting() {
    if (!get_done) return;
    const auto taken = take(reinterpret_cast<char*>(get_into), get_size);
    if (taken)
      std::exchange(get_done, std::nullopt)->set(*taken);
    else if (objection)
      std::exchange(get_done, std::nullopt)->set_exception(BrokenOff());
  }

  // The library must not wait for what will not come.
  void end() {
    ended = true;
    if (put_done) std::exchange(put_done, std::nullopt)->set_exception(BrokenOff());
    if (get_done) std::exchange(get_done, std::nullopt)->set_exception(BrokenOff());
  }
};

// A stream of the library in one direction; what the HTTP client never asks for does nothing.
class OneWayStream : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 protected:
  using Base = streambuf_state_manager<std::uint8_t>;
  using Mode = std::ios_base::openmode;
  using Char = pplx::task<int_type>;

  OneWayStream(std::shared_ptr<CpprestExchange> exchange, Mode mode)
      : Base(mode), exchange_(std::move(exchange)) {}

  // The library waits for this, on its only thread, when a stream fails: nothing is left to do.
  pplx::task<void> close(Mode) override { return pplx::task_from_result(); }
  pplx::task<void> close(Mode, std::exception_ptr why) override {
    m_currentException = why;
    return pplx::task_from_result();
  }
  // Also what keeps the library from sending an upload again by itself.
  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(Mode) const override { return 0; }
  void set_buffer_size(std::size_t, Mode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(Mode) const override { return nowhere(); }
  pos_type seekpos(pos_type, Mode) override { return nowhere(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, Mode) override { return nowhere(); }
  bool acquire(std::uint8_t*& start, std::size_t& count) override {
    start = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

  Char _putc(std::uint8_t) override { return nothing(); }
  Char _bumpc() override { return nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  Char _getc() override { return nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  Char _nextc() override { return nothing(); }
  Char _ungetc() override { return nothing(); }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}
  CpprestExchange::Count _putn(const std::uint8_t*, std::size_t) override {
    return pplx::task_from_result(std::size_t{0});
  }
  CpprestExchange::Count _getn(std::uint8_t*, std::size_t) override {
    return pplx::task_from_result(std::size_t{0});
  }

  const std::shared_ptr<CpprestExchange> exchange_;

 private:
  static pos_type nowhere() { return pos_type(off_type(-1)); }
  static Char nothing() { return pplx::task_from_result<int_type>(traits::eof()); }
};

class DownStream final : public OneWayStream {
 public:
  explicit DownStream(std::shared_ptr<CpprestExchange> exchange)
      : OneWayStream(std::move(exchange), std::ios_base::out) {}

 private:
  CpprestExchange::Count _putn(const std::uint8_t* bytes, std::size_t count) override {
    return exchange_->put({reinterpret_cast<const char*>(bytes), count});
  }
};

class UpStream final : public OneWayStream {
 public:
  explicit UpStream(std::shared_ptr<CpprestExchange> exchange)
      : OneWayStream(std::move(exchange), std::ios_base::in) {}

 private:
  CpprestExchange::Count _getn(std::uint8_t* buffer, std::size_t size) override {
    return exchange_->get(buffer, size);
  }
};

// Who sits on a connection: the callbacks of its client find the exchange here.
struct Seat {
  std::weak_ptr<CpprestExchange> exchange;
  bool tls = false, tunnelled = false;
  std::string server_name;  // That TLS checks, and asks for unless it is an address.
  std::function<void(std::shared_ptr<CpprestExchange>)> cut;  // Ends one that has an objection.

  // Before each departure, the library's own second try included. On a new connection the socket
  // is not open yet; `handle` is a socket, or a TLS stream over one.
  void before_departure(void* handle) {
    using Socket = boost::asio::ip::tcp::socket;
    const auto sitting = exchange.lock();
    if (!sitting || sitting->ended) throw BrokenOff();
    if (sitting->departures > 0 && !sitting->is_repeatable()) throw BrokenOff();
    if (!tunnelled) {  // There the handle is either, and the connection always new.
      auto* stream = static_cast<boost::asio::ssl::stream<Socket&>*>(handle);
      Socket& socket = tls ? stream->next_layer() : *static_cast<Socket*>(handle);
      if (socket.is_open()) {
        if (is_spoilt(socket.native_handle()) || (tls && SSL_has_pending(stream->native_handle())))
          throw StaleConnection();
        sitting->depart();
      }
    }
    ++sitting->departures;
  }

  // Lets each connection of a context report here. `context` lives no longer than the client.
  void listen_to(SSL_CTX* context) {
    SSL_CTX_set_ex_data(context, place_of_seat(), this);
    SSL_CTX_set_info_callback(context, on_state);
    SSL_CTX_set_cert_verify_callback(context, verify, this);
    SSL_CTX_set_msg_callback(context, on_tls);
    SSL_CTX_set_msg_callback_arg(context, this);
  }

 private:
  // Closed by the other side, or with bytes that nobody asked for.
  static bool is_spoilt(int fd) {
    pollfd asked{fd, POLLIN | POLLRDHUP, 0};
    return poll(&asked, 1, 0) != 0;
  }

  static int place_of_seat() {
    static const int place = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return place;
  }

  // The library asks for the name that it takes from the URL or the Host header, and checks that.
  static void on_state(const SSL* ssl, int where, int) {
    if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
    const void* self = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), place_of_seat());
    const std::string& name = static_cast<const Seat*>(self)->server_name;
    if (!base::is_ip_address(name)) SSL_set_tlsext_host_name(const_cast<SSL*>(ssl), name.c_str());
  }

  static int verify(X509_STORE_CTX* asked, void* self) {
    const std::string& name = static_cast<Seat*>(self)->server_name;
    X509_STORE_CTX_set_verify_cb(asked, [](int good, X509_STORE_CTX*) { return good; });
    X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(asked);
    const int set = base::is_ip_address(name)
                        ? X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str())
                        : X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size());
    return set == 1 ? X509_verify_cert(asked) : 0;
  }

  // OpenSSL shows each record and alert that passes.
  static void on_tls(int written, int, int type, const void* start, std::size_t size, SSL* ssl,
                     void* self) {
    const auto& seat = *static_cast<Seat*>(self);
    const auto sitting = seat.exchange.lock();
    if (!sitting || sitting->ended || size == 0) return;
    const auto* bytes = static_cast<const unsigned char*>(start);
    const bool data = bytes[0] == SSL3_RT_APPLICATION_DATA;
    if (type == SSL3_RT_ALERT && size == 2 && bytes[0] == SSL3_AL_FATAL) {
      const long verdict = SSL_get_verify_result(ssl);
      sitting->tls_trouble = verdict == X509_V_OK ? SSL_alert_desc_string_long(bytes[1])
                                                  : X509_verify_cert_error_string(verdict);
    } else if (written && data &&
               type == (SSL_version(ssl) < TLS1_3_VERSION ? SSL3_RT_HEADER
                                                          : SSL3_RT_INNER_CONTENT_TYPE)) {
      sitting->depart();  // In 1.3 the outer type is data from the client's Finished on.
    } else if (!written && data && type == SSL3_RT_HEADER && size >= SSL3_RT_HEADER_LENGTH) {
      seat.heard(sitting, std::size_t(bytes[3] << 8 | bytes[4]));
    }
  }

  void heard(const std::shared_ptr<CpprestExchange>& sitting, std::size_t bytes) const {
    if (sitting->mode == Exchange::Mode::kStream) sitting->wait_anew();
    sitting->unseen_bytes += bytes;
    if (sitting->objection) return;
    const bool whole = sitting->mode == Exchange::Mode::kWhole;
    const std::size_t most = !sitting->head_seen ? kHeadBytesMax
                             : whole             ? sitting->request->body_bytes_max
                                                 : kBodyBytesMax;
    if (sitting->unseen_bytes <= most + kReadAheadBytesMax) return;
    const char* what = !sitting->head_seen ? "head" : whole ? "body" : "chunk";
    sitting->objection = sitting->failure(
        base::ErrorCode::kInvalid,
        std::string("the reply's ") + what + " is larger than " + std::to_string(most) + " bytes");
    cut(sitting);
  }
};

}  // namespace net
