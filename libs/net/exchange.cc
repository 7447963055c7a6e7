#include "libs/net/exchange.h"

#include <algorithm>
#include <utility>

namespace net {

using base::ErrorCode;

base::Moment present_moment() { return base::SystemClock().now(); }

Failure Exchange::failure(ErrorCode code, std::string_view why) const {
  return Failure{{code, what() + ": " + std::string(why)}, sent};
}

void Exchange::wait_anew() { deadline = present_moment() + timeout; }

Failure Exchange::overdue() const {
  return failure(ErrorCode::kUnavailable,
                 (mode == Mode::kStream ? "silent for " : "no answer within ") +
                     std::to_string(timeout.count()) + " ms");
}

bool Exchange::allows_head_of(std::size_t bytes) {
  if (bytes <= kHeadBytesMax) return true;
  objection = failure(ErrorCode::kInvalid, "the reply's head is larger than " +
                                               std::to_string(kHeadBytesMax) + " bytes");
  return false;
}

void Exchange::show_head() {
  wait_anew();
  std::lock_guard lock(mutex);
  head = response;
  news = true;
  changed.notify_all();
}

bool Exchange::keep(std::string_view bytes) {
  if (response.body.size() + bytes.size() > request->body_bytes_max) {
    objection =
        failure(ErrorCode::kInvalid, "the reply's body is larger than " +
                                         std::to_string(request->body_bytes_max) + " bytes");
    return false;
  }
  response.body.append(bytes);
  return true;
}

bool Exchange::pass_on(std::string_view bytes) {
  wait_anew();
  std::lock_guard lock(mutex);
  if (inbox.size() >= kInboxBytesMax) {
    write_paused = true;
    return false;
  }
  news = true;
  inbox.append(bytes);
  changed.notify_all();
  return true;
}

std::optional<std::size_t> Exchange::take(char* buffer, std::size_t size) {
  if (done) {
    auto filled = request->source(buffer, size);
    if (filled) return *filled;
    objection = Failure{filled.error(), sent};
    return std::nullopt;
  }
  std::lock_guard lock(mutex);
  if (source_failed) {
    objection = source_failed;
    return std::nullopt;
  }
  if (outbox.empty() && !source_ended) {
    source_wanted = read_paused = true;
    changed.notify_all();
    return std::nullopt;
  }
  const std::size_t taken = std::min(size, outbox.size());
  outbox.copy(buffer, taken);
  outbox.erase(0, taken);
  if (mode == Mode::kStream) wait_anew();
  return taken;
}

void Exchange::settle(Reply made) {
  if (done) return std::exchange(done, nullptr)(std::move(made));
  std::lock_guard lock(mutex);
  reply = std::move(made);
  changed.notify_all();
}

Reply Exchange::attend(const Sink& sink, std::stop_token stop,
                       const std::function<void(Order)>& order) {
  if (stop.stop_requested()) return failure(ErrorCode::kCancelled, "cancelled");
  order(Order::kAdd);
  const std::stop_callback cancel(stop, [&] { order(Order::kCancel); });
  bool head_seen = false, enough = false;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return reply || source_wanted || news; });
    if (source_wanted) feed(lock, order);
    if (news && !drain(sink, head_seen, lock, order) && !std::exchange(enough, true))
      order(Order::kEnough);
    if (!reply || (news && !enough)) continue;
    return enough ? Reply(*head) : *std::move(reply);
  }
}

// Reads the next piece of the upload, without the lock.
void Exchange::feed(std::unique_lock<std::mutex>& lock, const std::function<void(Order)>& order) {
  source_wanted = false;
  if (outbox.empty() && !source_ended) {
    lock.unlock();
    std::string piece(kOutboxBytesMax, '\0');
    auto filled = request->source(piece.data(), piece.size());
    piece.resize(filled ? std::min(*filled, piece.size()) : 0);
    lock.lock();
    if (!filled) source_failed = Failure{filled.error(), true};
    source_ended = piece.empty();
    outbox = std::move(piece);
  }
  order(Order::kResume);
}

// Hands what has come to the sink, without the lock. False: the sink has seen enough.
bool Exchange::drain(const Sink& sink, bool& head_seen, std::unique_lock<std::mutex>& lock,
                     const std::function<void(Order)>& order) {
  news = false;
  const std::string bytes = std::exchange(inbox, {});
  lock.unlock();
  bool more = true;
  if (!std::exchange(head_seen, true) && sink.head) more = sink.head(*head);
  if (more && !bytes.empty() && sink.bytes) more = sink.bytes(bytes);
  lock.lock();
  if (bytes.size() >= kInboxBytesMax) order(Order::kResume);
  return more;
}

Reply ExchangeTransport::send(const Request& request, base::Milliseconds timeout,
                              std::stop_token stop) {
  return attend(request, Sink{}, timeout, Exchange::Mode::kWhole, stop);
}

void ExchangeTransport::start(Request request, base::Milliseconds timeout,
                              std::function<void(Reply)> done) {
  auto exchange = new_exchange();
  exchange->own = std::move(request);
  exchange->request = &exchange->own;
  exchange->timeout = timeout;
  exchange->done = std::move(done);
  order(Exchange::Order::kAdd, std::move(exchange));
}

Reply ExchangeTransport::stream(const Request& request, const Sink& sink,
                                base::Milliseconds idle_timeout, std::stop_token stop) {
  return attend(request, sink, idle_timeout, Exchange::Mode::kStream, stop);
}

Reply ExchangeTransport::attend(const Request& request, const Sink& sink,
                                base::Milliseconds timeout, Exchange::Mode mode,
                                std::stop_token stop) {
  const auto exchange = new_exchange();
  exchange->request = &request;
  exchange->timeout = timeout;
  exchange->mode = mode;
  return exchange->attend(sink, stop, [&](Exchange::Order kind) { order(kind, exchange); });
}

}  // namespace net
