#pragma once

#include "libs/base/testing/fake_clock.h"
#include "libs/kube/client.h"
#include "libs/net/testing/fake_transport.h"

namespace kube {

// A client whose API server is a function.
class FakeServer {
 public:
  explicit FakeServer(net::Handler handler, User user = {})
      : transport_(std::move(handler)),
        connection_({.cluster = {"https://api.test"}, .user = std::move(user)}, clock_,
                    {.transport =
                         [this](const net::ConnectionOptions& options) {
                           std::lock_guard lock(mutex_);
                           options_.push_back(options);
                           return std::make_unique<Borrowed>(transport_);
                         },
                     .on_call =
                         [this](const Call& call) {
                           std::lock_guard lock(mutex_);
                           calls_.push_back(call);
                         }}) {}

  net::FakeTransport& transport() { return transport_; }
  base::FakeClock& clock() { return clock_; }
  Connection& connection() { return connection_; }
  Client& client() { return client_; }
  // Of each transport that the connection asked for.
  std::vector<net::ConnectionOptions> options() const {
    std::lock_guard lock(mutex_);
    return options_;
  }
  std::vector<Call> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  struct Borrowed final : net::Transport {
    explicit Borrowed(net::Transport& owner) : owner(owner) {}
    net::Reply send(const net::Request& request, base::Milliseconds timeout,
                    std::stop_token stop) override {
      return owner.send(request, timeout, stop);
    }
    void start(net::Request request, base::Milliseconds timeout,
               std::function<void(net::Reply)> done) override {
      owner.start(std::move(request), timeout, std::move(done));
    }
    net::Reply stream(const net::Request& request, const net::Sink& sink,
                      base::Milliseconds idle_timeout, std::stop_token stop) override {
      return owner.stream(request, sink, idle_timeout, stop);
    }
    net::Transport& owner;
  };

  base::FakeClock clock_;
  net::FakeTransport transport_;
  mutable std::mutex mutex_;
  std::vector<net::ConnectionOptions> options_;
  std::vector<Call> calls_;
  Connection connection_;
  Client client_{connection_};
};

}  // namespace kube
