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

class CurlTransport final : public ExchangeTransport {
 public:
  explicit CurlTransport(ConnectionOptions options) : options_(std::move(options)) {
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

 private:
  struct Order {
    Exchange::Order kind;
    Shared exchange;
  };

  std::shared_ptr<Exchange> new_exchange() override { return std::make_shared<CurlExchange>(); }

  void order(Exchange::Order kind, std::shared_ptr<Exchange> exchange) override {
    {
      std::lock_guard lock(orders_mutex_);
      orders_.push_back({kind, std::static_pointer_cast<CurlExchange>(std::move(exchange))});
    }
    curl_multi_wakeup(multi_);
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
    if (order.kind == Exchange::Order::kAdd) return add(order.exchange);
    if (!live_.contains(order.exchange.get())) return;  // It has ended meanwhile.
    switch (order.kind) {
      case Exchange::Order::kCancel:
        return finish(order.exchange, order.exchange->failure(ErrorCode::kCancelled, "cancelled"));
      case Exchange::Order::kEnough:
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
    const Moment present = present_moment();
    if (present < next_check_) return;
    next_check_ = Moment::max();
    std::vector<Shared> overdue;
    for (const auto& [key, exchange] : live_) {
      if (exchange->is_waiting_for_caller()) continue;
      if (exchange->deadline <= present)
        overdue.push_back(exchange);
      else
        next_check_ = std::min(next_check_, exchange->deadline);
    }
    for (const Shared& exchange : overdue) finish(exchange, exchange->overdue());
  }

  int wait_ms() const {
    constexpr Milliseconds kLongest{60'000};
    if (next_check_ == Moment::max()) return int(kLongest.count());
    return int(
        std::clamp(next_check_ - present_moment() + Milliseconds(1), Milliseconds(0), kLongest)
            .count());
  }

  // From here on the caller's request may be gone.
  void finish(Shared exchange, Reply reply) {
    if (exchange->easy) curl_multi_remove_handle(multi_, exchange->easy.get());
    exchange->easy.reset();
    live_.erase(exchange.get());
    exchange->settle(std::move(reply));
  }

  const ConnectionOptions options_;
  CURLM* multi_;
  std::mutex orders_mutex_;
  std::vector<Order> orders_;
  std::unordered_map<const CurlExchange*, Shared> live_;  // Of the curl thread, like `next_check_`.
  Moment next_check_ = Moment::max();
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Transport> curl_transport(ConnectionOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace net
