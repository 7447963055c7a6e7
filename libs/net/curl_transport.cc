#include "libs/net/curl_transport.h"

#include <algorithm>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/net/curl_exchange.h"

namespace net {
namespace {

using base::ErrorCode;
using base::Milliseconds;
using base::Moment;
using Shared = std::shared_ptr<CurlExchange>;

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
    const Shared exchange = made(request, timeout, CurlExchange::Mode::kWhole);
    return attend(exchange, Sink{}, stop);
  }

  void start(Request request, Milliseconds timeout, std::function<void(Reply)> done) override {
    auto exchange = std::make_shared<CurlExchange>();
    exchange->own = std::move(request);
    exchange->request = &exchange->own;
    exchange->timeout = timeout;
    exchange->done = std::move(done);
    submit(exchange);
  }

  Reply stream(const Request& request, const Sink& sink, Milliseconds idle_timeout,
               std::stop_token stop) override {
    const Shared exchange = made(request, idle_timeout, CurlExchange::Mode::kStream);
    return attend(exchange, sink, stop);
  }

 private:
  struct Order {
    enum class Kind { kAdd, kCancel, kEnough, kResume };
    Kind kind;
    Shared exchange;
  };

  static Shared made(const Request& request, Milliseconds timeout, CurlExchange::Mode mode) {
    auto exchange = std::make_shared<CurlExchange>();
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
    if (stop.stop_requested()) return exchange->failure(ErrorCode::kCancelled, "cancelled");
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
      finish(exchange, exchange->failure(ErrorCode::kCancelled, "shutting down"));
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
        return finish(order.exchange, order.exchange->failure(ErrorCode::kCancelled, "cancelled"));
      case Order::Kind::kEnough:
        return finish(order.exchange, std::move(order.exchange->response));
      default:
        order.exchange->read_paused = order.exchange->write_paused = false;
        if (order.exchange->mode == CurlExchange::Mode::kStream) set_deadline(*order.exchange);
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
      finish(exchange, exchange->failure(ErrorCode::kUnavailable, "out of memory"));
  }

  void set_deadline(CurlExchange& exchange) {
    exchange.wait_anew();
    next_check_ = std::min(next_check_, exchange.deadline);
  }

  void collect_finished() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CurlExchange* exchange = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      const CURLcode code = message->data.result;
      finish(live_.at(exchange), outcome_of(*exchange, code));
    }
  }

  // Looks at every exchange only when the earliest deadline has come.
  void end_overdue() {
    const Moment present = curl_now();
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
      const bool stream = exchange->mode == CurlExchange::Mode::kStream;
      finish(exchange, exchange->failure(ErrorCode::kUnavailable,
                                         (stream ? "silent for " : "no answer within ") +
                                             std::to_string(exchange->timeout.count()) + " ms"));
    }
  }

  // A stream is not silent while it waits for our own side.
  static bool is_waiting_for_caller(const CurlExchange& exchange) {
    return exchange.mode == CurlExchange::Mode::kStream &&
           (exchange.read_paused || exchange.write_paused);
  }

  int wait_ms() const {
    constexpr Milliseconds kLongest{60'000};
    if (next_check_ == Moment::max()) return int(kLongest.count());
    return int(
        std::clamp(next_check_ - curl_now() + Milliseconds(1), Milliseconds(0), kLongest).count());
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
  std::unordered_map<const CurlExchange*, Shared> live_;  // Of the curl thread, like `next_check_`.
  Moment next_check_ = Moment::max();
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Transport> curl_transport(CurlOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace net
