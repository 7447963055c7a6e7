#include "libs/net/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "libs/base/strings.h"

namespace net {
namespace {

using base::ErrorCode;
using base::Milliseconds;
using base::Moment;

// What may wait between the curl thread and the caller's, in either direction, of one exchange.
constexpr std::size_t kInboxBytesMax = 1u << 20;
constexpr std::size_t kOutboxBytesMax = 64u << 10;

Moment now() { return base::SystemClock().now(); }

Failure failure(ErrorCode code, std::string message, bool sent) {
  return Failure{{code, std::move(message)}, sent};
}

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One request under way. The curl thread owns `easy` and all plain fields from submission to the
// end; what it shares with a caller that pumps bytes is guarded by `mutex`.
struct Exchange {
  enum class Mode { kWhole, kStream };

  Mode mode = Mode::kWhole;
  const Request* request = nullptr;  // The caller's, or `own`.
  Request own;
  Milliseconds timeout{0};
  std::function<void(Reply)> done;  // Asynchronous only.

  std::unique_ptr<CURL, EasyDeleter> easy;
  std::unique_ptr<curl_slist, ListDeleter> header_list;
  Moment deadline{};
  bool sent = false;
  Response response;
  std::size_t head_bytes = 0;
  bool head_whole = false;
  std::optional<Failure> objection;  // Why a callback broke the exchange off.
  bool read_paused = false, write_paused = false;

  std::mutex mutex;
  std::condition_variable changed;
  std::string inbox;             // Body bytes for the caller's sink.
  std::string outbox;            // Body bytes from the caller's source.
  std::optional<Response> head;  // Once it is whole.
  bool news = false;             // The head or bytes came since the caller last looked.
  bool source_wanted = false, source_ended = false;
  std::optional<Failure> source_failed;
  std::optional<Reply> reply;

  std::string what() const { return request->method + " " + describe_url(request->url); }
};
using Shared = std::shared_ptr<Exchange>;

bool is_repeatable(const Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

// libcurl calls this each time it is about to send the request on a connection: until then nothing
// was sent, and a second call is a silent second try after a reused connection died.
int on_connected(void* self, char*, char*, int, int) {
  auto& exchange = *static_cast<Exchange*>(self);
  if (exchange.sent && !is_repeatable(*exchange.request)) {
    exchange.objection =
        failure(ErrorCode::kUnavailable,
                exchange.what() + ": the connection closed before an answer", true);
    return CURL_PREREQFUNC_ABORT;
  }
  exchange.sent = true;
  return CURL_PREREQFUNC_OK;
}

void show_head(Exchange& exchange) {
  exchange.deadline = now() + exchange.timeout;
  std::lock_guard lock(exchange.mutex);
  exchange.head = exchange.response;
  exchange.news = true;
  exchange.changed.notify_all();
}

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  if (exchange.head_whole) return count;  // Trailers say nothing we ask for.
  const std::string_view line = base::trim({bytes, count});
  exchange.head_bytes += count;
  if (exchange.head_bytes > kHeadBytesMax) {
    exchange.objection = failure(ErrorCode::kInvalid,
                                 exchange.what() + ": the reply's head is larger than " +
                                     std::to_string(kHeadBytesMax) + " bytes",
                                 true);
    return 0;
  }
  if (line.starts_with("HTTP/")) {  // A new head: an interim reply or a proxy's came before.
    exchange.response = Response{};
  } else if (line.empty()) {
    long status = 0;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    exchange.response.status = static_cast<int>(status);
    exchange.head_whole = status >= 200;
    if (exchange.head_whole && exchange.mode == Exchange::Mode::kStream) show_head(exchange);
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    exchange.response.headers.add(std::string(line.substr(0, colon)),
                                  std::string(base::trim(line.substr(colon + 1))));
  }
  return count;
}

std::size_t keep_whole(Exchange& exchange, std::string_view bytes) {
  if (exchange.response.body.size() + bytes.size() > kBodyBytesMax) {
    exchange.objection = failure(ErrorCode::kInvalid,
                                 exchange.what() + ": the reply's body is larger than " +
                                     std::to_string(kBodyBytesMax) + " bytes",
                                 true);
    return 0;
  }
  exchange.response.body.append(bytes);
  return bytes.size();
}

std::size_t pass_on(Exchange& exchange, std::string_view bytes) {
  exchange.deadline = now() + exchange.timeout;
  std::lock_guard lock(exchange.mutex);
  if (exchange.inbox.size() >= kInboxBytesMax) {
    exchange.write_paused = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  exchange.news = true;
  exchange.inbox.append(bytes);
  exchange.changed.notify_all();
  return bytes.size();
}

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::string_view piece(bytes, count);
  return exchange.mode == Exchange::Mode::kWhole ? keep_whole(exchange, piece)
                                                 : pass_on(exchange, piece);
}

std::size_t read_source_here(Exchange& exchange, char* buffer, std::size_t size) {
  auto filled = exchange.request->source(buffer, size);
  if (filled) return *filled;
  exchange.objection = Failure{filled.error(), exchange.sent};
  return CURL_READFUNC_ABORT;
}

std::size_t on_upload(char* buffer, std::size_t unit, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const std::size_t size = unit * count;
  if (exchange.done) return read_source_here(exchange, buffer, size);
  std::lock_guard lock(exchange.mutex);
  if (exchange.source_failed) {
    exchange.objection = exchange.source_failed;
    return CURL_READFUNC_ABORT;
  }
  if (exchange.outbox.empty() && !exchange.source_ended) {
    exchange.source_wanted = exchange.read_paused = true;
    exchange.changed.notify_all();
    return CURL_READFUNC_PAUSE;
  }
  const std::size_t taken = std::min(size, exchange.outbox.size());
  exchange.outbox.copy(buffer, taken);
  exchange.outbox.erase(0, taken);
  if (exchange.mode == Exchange::Mode::kStream) exchange.deadline = now() + exchange.timeout;
  return taken;
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

void set_connection(CURL* easy, const CurlOptions& options, const Exchange& exchange) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // Never wait for a resolver that hangs.
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, long(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  if (exchange.request->fresh_connection) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  if (options.proxy) curl_easy_setopt(easy, CURLOPT_PROXY, options.proxy->c_str());
  if (!options.ca_bundle.empty()) {
    const curl_blob blob = blob_of(options.ca_bundle);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!options.client_certificate.empty()) {
    const curl_blob certificate = blob_of(options.client_certificate);
    const curl_blob key = blob_of(options.client_key);
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
  }
}

void set_body(CURL* easy, Exchange& exchange) {
  const Request& request = *exchange.request;
  if (request.source) {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
    curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                     request.source_bytes ? curl_off_t(*request.source_bytes) : curl_off_t(-1));
  } else if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  } else if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return;
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void set_headers(CURL* easy, Exchange& exchange) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  for (const Header& header : exchange.request->headers.all())
    add(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  // libcurl adds these two by itself; nobody asked for them.
  if (!exchange.request->headers.find("Content-Type")) add("Content-Type:");
  add("Expect:");
  exchange.header_list.reset(list);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
}

bool prepare(Exchange& exchange, const CurlOptions& options) {
  exchange.easy.reset(curl_easy_init());
  CURL* easy = exchange.easy.get();
  if (easy == nullptr) return false;
  curl_easy_setopt(easy, CURLOPT_URL, exchange.request->url.c_str());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  set_connection(easy, options, exchange);
  set_body(easy, exchange);
  set_headers(easy, exchange);
  return true;
}

Reply outcome_of(Exchange& exchange, CURLcode code) {
  if (exchange.objection) return *std::move(exchange.objection);
  // libcurl takes a connection that closes within the head for a reply without a body.
  if (code == CURLE_OK && exchange.head_whole) return std::move(exchange.response);
  if (code == CURLE_OK) code = CURLE_GOT_NOTHING;
  std::string message = exchange.what() + ": " + curl_easy_strerror(code);
  if (exchange.sent && exchange.head_whole) message += " (the reply broke off)";
  const bool hopeless = !exchange.sent && code == CURLE_URL_MALFORMAT;
  return failure(hopeless ? ErrorCode::kInvalid : ErrorCode::kUnavailable, std::move(message),
                 exchange.sent);
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(CurlOptions options) : options_(std::move(options)) {
    curl_global_init(CURL_GLOBAL_DEFAULT);  // Counted, and safe between threads since 7.84.
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, long(options_.connections_max));
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, long(options_.connections_kept));
    curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  ~CurlTransport() override {
    thread_.request_stop();
    curl_multi_wakeup(multi_);
    thread_.join();
    curl_multi_cleanup(multi_);
    curl_global_cleanup();
  }

  Reply send(const Request& request, Milliseconds timeout, std::stop_token stop) override {
    const Shared exchange = made(request, timeout, Exchange::Mode::kWhole);
    return attend(exchange, Sink{}, stop);
  }

  void start(Request request, Milliseconds timeout, std::function<void(Reply)> done) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->own = std::move(request);
    exchange->request = &exchange->own;
    exchange->timeout = timeout;
    exchange->done = std::move(done);
    submit(exchange);
  }

  Reply stream(const Request& request, const Sink& sink, Milliseconds idle_timeout,
               std::stop_token stop) override {
    const Shared exchange = made(request, idle_timeout, Exchange::Mode::kStream);
    return attend(exchange, sink, stop);
  }

 private:
  struct Order {
    enum class Kind { kAdd, kCancel, kEnough, kResume };
    Kind kind;
    Shared exchange;
  };

  static Shared made(const Request& request, Milliseconds timeout, Exchange::Mode mode) {
    auto exchange = std::make_shared<Exchange>();
    exchange->request = &request;
    exchange->timeout = timeout;
    exchange->mode = mode;
    return exchange;
  }

  // --- On the caller's thread.

  void order(Order::Kind kind, const Shared& exchange) {
    {
      std::lock_guard lock(orders_mutex_);
      orders_.push_back({kind, exchange});
    }
    curl_multi_wakeup(multi_);
  }

  void submit(const Shared& exchange) { order(Order::Kind::kAdd, exchange); }

  // Carries bytes between the exchange and the caller's source and sink until the reply is there.
  Reply attend(const Shared& exchange, const Sink& sink, std::stop_token stop) {
    if (stop.stop_requested())
      return failure(ErrorCode::kCancelled, exchange->what() + ": cancelled", false);
    submit(exchange);
    const std::stop_callback cancel(stop, [&] { order(Order::Kind::kCancel, exchange); });
    bool head_seen = false, enough = false;
    std::unique_lock lock(exchange->mutex);
    for (;;) {
      exchange->changed.wait(
          lock, [&] { return exchange->reply || exchange->source_wanted || exchange->news; });
      if (exchange->source_wanted) feed(exchange, lock);
      if (exchange->news && !drain(exchange, sink, head_seen, lock) && !std::exchange(enough, true))
        order(Order::Kind::kEnough, exchange);
      if (!exchange->reply || (exchange->news && !enough)) continue;
      return enough ? Reply(*exchange->head) : *std::move(exchange->reply);
    }
  }

  // Reads the next piece of the upload, without the lock.
  void feed(const Shared& exchange, std::unique_lock<std::mutex>& lock) {
    exchange->source_wanted = false;
    if (exchange->outbox.empty() && !exchange->source_ended) {
      lock.unlock();
      std::string piece(kOutboxBytesMax, '\0');
      auto filled = exchange->request->source(piece.data(), piece.size());
      piece.resize(filled ? std::min(*filled, piece.size()) : 0);
      lock.lock();
      if (!filled) exchange->source_failed = Failure{filled.error(), true};
      exchange->source_ended = piece.empty();
      exchange->outbox = std::move(piece);
    }
    order(Order::Kind::kResume, exchange);
  }

  // Hands what has come to the sink, without the lock. False: the sink has seen enough.
  bool drain(const Shared& exchange, const Sink& sink, bool& head_seen,
             std::unique_lock<std::mutex>& lock) {
    exchange->news = false;
    const std::string bytes = std::exchange(exchange->inbox, {});
    lock.unlock();
    bool more = true;
    if (!std::exchange(head_seen, true) && sink.head) more = sink.head(*exchange->head);
    if (more && !bytes.empty() && sink.bytes) more = sink.bytes(bytes);
    lock.lock();
    if (bytes.size() >= kInboxBytesMax) order(Order::Kind::kResume, exchange);
    return more;
  }

  // --- On the curl thread.

  void run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      obey_orders();
      int running = 0;
      curl_multi_perform(multi_, &running);
      collect_finished();
      end_overdue();
      curl_multi_poll(multi_, nullptr, 0, wait_ms(), nullptr);
    }
    for (obey_orders(); !live_.empty(); obey_orders()) {
      const Shared exchange = live_.begin()->second;
      finish(exchange,
             failure(ErrorCode::kCancelled, exchange->what() + ": shutting down", exchange->sent));
    }
  }

  void obey_orders() {
    std::vector<Order> orders;
    {
      std::lock_guard lock(orders_mutex_);
      orders.swap(orders_);
    }
    for (const Order& order : orders) obey(order);
  }

  void obey(const Order& order) {
    if (order.kind == Order::Kind::kAdd) return add(order.exchange);
    if (!live_.contains(order.exchange.get())) return;  // It has ended meanwhile.
    switch (order.kind) {
      case Order::Kind::kCancel:
        return finish(order.exchange,
                      failure(ErrorCode::kCancelled, order.exchange->what() + ": cancelled",
                              order.exchange->sent));
      case Order::Kind::kEnough:
        return finish(order.exchange, std::move(order.exchange->response));
      default:
        order.exchange->read_paused = order.exchange->write_paused = false;
        if (order.exchange->mode == Exchange::Mode::kStream) set_deadline(*order.exchange);
        curl_easy_pause(order.exchange->easy.get(), CURLPAUSE_CONT);
    }
  }

  void add(const Shared& exchange) {
    live_[exchange.get()] = exchange;
    set_deadline(*exchange);
    if (auto objection = objection_to(*exchange->request))
      return finish(exchange, *std::move(objection));
    if (!prepare(*exchange, options_) ||
        curl_multi_add_handle(multi_, exchange->easy.get()) != CURLM_OK)
      finish(exchange,
             failure(ErrorCode::kUnavailable, exchange->what() + ": out of memory", false));
  }

  void set_deadline(Exchange& exchange) {
    exchange.deadline = now() + exchange.timeout;
    next_check_ = std::min(next_check_, exchange.deadline);
  }

  void collect_finished() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Exchange* exchange = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      const CURLcode code = message->data.result;
      finish(live_.at(exchange), outcome_of(*exchange, code));
    }
  }

  // Looks at every exchange only when the earliest deadline has come.
  void end_overdue() {
    const Moment present = now();
    if (present < next_check_) return;
    next_check_ = Moment::max();
    std::vector<Shared> overdue;
    for (const auto& [key, exchange] : live_) {
      if (is_waiting_for_caller(*exchange)) continue;
      if (exchange->deadline <= present)
        overdue.push_back(exchange);
      else
        next_check_ = std::min(next_check_, exchange->deadline);
    }
    for (const Shared& exchange : overdue) {
      const bool stream = exchange->mode == Exchange::Mode::kStream;
      finish(exchange,
             failure(ErrorCode::kUnavailable,
                     exchange->what() + (stream ? ": silent for " : ": no answer within ") +
                         std::to_string(exchange->timeout.count()) + " ms",
                     exchange->sent));
    }
  }

  // A stream is not silent while it waits for our own side.
  static bool is_waiting_for_caller(const Exchange& exchange) {
    return exchange.mode == Exchange::Mode::kStream &&
           (exchange.read_paused || exchange.write_paused);
  }

  int wait_ms() const {
    constexpr Milliseconds kLongest{60'000};
    if (next_check_ == Moment::max()) return int(kLongest.count());
    return int(
        std::clamp(next_check_ - now() + Milliseconds(1), Milliseconds(0), kLongest).count());
  }

  // From here on the caller's request may be gone.
  void finish(Shared exchange, Reply reply) {
    if (exchange->easy) curl_multi_remove_handle(multi_, exchange->easy.get());
    exchange->easy.reset();
    live_.erase(exchange.get());
    if (exchange->done) return std::exchange(exchange->done, nullptr)(std::move(reply));
    std::lock_guard lock(exchange->mutex);
    exchange->reply = std::move(reply);
    exchange->changed.notify_all();
  }

  const CurlOptions options_;
  CURLM* multi_;
  std::mutex orders_mutex_;
  std::vector<Order> orders_;
  std::unordered_map<const Exchange*, Shared> live_;  // Of the curl thread, like `next_check_`.
  Moment next_check_ = Moment::max();
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Transport> curl_transport(CurlOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace net
