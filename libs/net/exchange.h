#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/net/transport.h"

// One request under way, and how its bytes pass between its caller's thread and the thread of the
// transport that carries it. Included by transports alone.
namespace net {

// What may wait between the two threads, in either direction, of one exchange.
inline constexpr std::size_t kInboxBytesMax = 1u << 20;
inline constexpr std::size_t kOutboxBytesMax = 64u << 10;

// The transport's thread owns all plain fields from submission to the end; what it shares with a
// caller that pumps bytes is guarded by `mutex`. A transport adds its own by derivation.
struct Exchange {
  enum class Mode { kWhole, kStream };
  // What the caller's thread asks the transport's to do.
  enum class Order {
    kAdd,
    kCancel,
    kEnough,  // The sink has seen enough.
    kResume,  // There is room in the inbox again, or an answer to `source_wanted`.
  };

  Mode mode = Mode::kWhole;
  const Request* request = nullptr;  // The caller's, or `own`.
  Request own;
  base::Milliseconds timeout{0};
  std::function<void(Reply)> done;  // Asynchronous only.

  base::Moment deadline{};
  bool sent = false;
  Response response;
  std::optional<Failure> objection;  // Why our side broke the exchange off.
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
  Failure failure(base::ErrorCode code, std::string_view why) const;
  // Only such a request may leave a second time.
  bool is_repeatable() const { return request->method == "GET" || request->method == "HEAD"; }

  // --- On the transport's thread.

  // The timeout, or the longest silence, begins anew.
  void wait_anew();
  // A stream is not silent while it waits for our own side.
  bool is_waiting_for_caller() const {
    return mode == Mode::kStream && (read_paused || write_paused);
  }
  Failure overdue() const;
  // False: so large that `objection` says so.
  bool allows_head_of(std::size_t bytes);
  // Shows `response` to the caller of a stream.
  void show_head();
  // Keeps bytes of a whole reply; false: they are too many, and `objection` says so.
  bool keep(std::string_view bytes);
  // Passes bytes of a stream on; false: the inbox is full, so none of them, and `write_paused`.
  bool pass_on(std::string_view bytes);
  // Bytes of the upload, 0 at its end. Nothing: either the source failed, as `objection` says, or
  // the caller's thread is at it and kResume will follow, as `read_paused` says.
  std::optional<std::size_t> take(char* buffer, std::size_t size);
  // Hands the reply over; from here on the caller's request may be gone.
  void settle(Reply made);

  // --- On the caller's thread.

  // Submits the exchange by kAdd and carries bytes between it and the caller's source and sink
  // until the reply is there. `order` hands an order to the transport's thread.
  Reply attend(const Sink& sink, std::stop_token stop, const std::function<void(Order)>& order);

 private:
  void feed(std::unique_lock<std::mutex>& lock, const std::function<void(Order)>& order);
  bool drain(const Sink& sink, bool& head_seen, std::unique_lock<std::mutex>& lock,
             const std::function<void(Order)>& order);
};

// The callers' half of a transport that has a thread of its own.
class ExchangeTransport : public Transport {
 public:
  Reply send(const Request& request, base::Milliseconds timeout, std::stop_token stop) final;
  void start(Request request, base::Milliseconds timeout, std::function<void(Reply)> done) final;
  Reply stream(const Request& request, const Sink& sink, base::Milliseconds idle_timeout,
               std::stop_token stop) final;

 protected:
  virtual std::shared_ptr<Exchange> new_exchange() = 0;
  // Hands an order to the transport's thread, from any thread.
  virtual void order(Exchange::Order order, std::shared_ptr<Exchange> exchange) = 0;

 private:
  Reply attend(const Request& request, const Sink& sink, base::Milliseconds timeout,
               Exchange::Mode mode, std::stop_token stop);
};

base::Moment present_moment();

}  // namespace net
