#pragma once

#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "libs/net/testing/answer.h"

namespace net {

// A transport whose other side is a function. It keeps what was asked (uploads read into `body`),
// obeys timeouts, stop tokens and bounds like a real one, and opens no socket.
class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(Handler handler);
  ~FakeTransport() override;

  void play(Handler handler);
  std::vector<Request> requests() const;
  base::Milliseconds last_timeout() const;  // Of the newest send, start or stream.
  std::size_t count(std::string_view method, std::string_view part_of_url = {}) const;

  Reply send(const Request& request, base::Milliseconds timeout, std::stop_token stop) override;
  void start(Request request, base::Milliseconds timeout, std::function<void(Reply)> done) override;
  Reply stream(const Request& request, const Sink& sink, base::Milliseconds idle_timeout,
               std::stop_token stop) override;

 private:
  base::Result<Answer, Failure> ask(const Request& request, std::stop_token stop);
  Reply play_out(const Request& request, const Sink& sink, base::Milliseconds timeout,
                 std::stop_token stop);

  mutable std::mutex mutex_;
  Handler handler_;
  std::vector<Request> requests_;
  base::Milliseconds last_timeout_{0};
  std::stop_source closing_;
  std::list<std::jthread> started_;
};

}  // namespace net
