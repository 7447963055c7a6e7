#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/base/clock.h"
#include "libs/kube/config.h"
#include "libs/kube/credentials.h"
#include "libs/net/connection_options.h"
#include "libs/net/transport.h"

namespace kube {

// One answer of the API server, or its absence: for rest_client_requests_total{code,method,host}
// and rest_client_request_duration_seconds, and for sandfleet_api_writes_total (write.h).
struct Call {
  std::string code;  // "200"; "<error>" when there was no answer.
  std::string method, host;
  std::string path = {};                        // On the server, with its query.
  std::optional<base::Milliseconds> took = {};  // Nothing: a watch, which lasts as long as it may.
};

struct ConnectionSettings {
  std::function<std::unique_ptr<net::Transport>(const net::ConnectionOptions&)> transport;
  // Called after every answer, on the caller's thread; must be short.
  std::function<void(const Call&)> on_call = {};
};

// The way to one API server: says who we are in every request, and follows authorities, keys and
// tokens when they rotate. Safe to call from many threads.
class Connection {
 public:
  Connection(Config config, const base::Clock& clock, ConnectionSettings settings);

  const Config& config() const { return config_; }

  // As those of net::Transport, but `request.url` is the path on the server. A 401 is tried once
  // more when there are newer credentials, for it says that nothing was done.
  net::Reply send(net::Request request, base::Milliseconds timeout, std::stop_token stop);
  net::Reply stream(net::Request request, const net::Sink& sink, base::Milliseconds idle_timeout,
                    std::stop_token stop);

  // A peer's text, fit for a message: net::tame, with what we last proved ourselves by hidden.
  std::string tame(std::string_view text) const;

 private:
  using Ask = std::function<net::Reply(net::Transport&, const net::Request&)>;

  net::Reply carry(net::Request request, std::stop_token stop, const Ask& ask);
  net::Reply attempt(net::Request request, const Proof& proof, const Ask& ask);
  base::Result<std::shared_ptr<net::Transport>> transport_for(const Proof& proof);
  void report(const net::Request& request, const net::Reply& reply,
              std::optional<base::Milliseconds> took) const;

  const Config config_;
  const base::Clock& clock_;
  const ConnectionSettings settings_;
  const std::string host_;
  Credentials credentials_;

  mutable std::mutex mutex_;
  std::optional<KeptFile> authority_file_;
  net::ConnectionOptions options_;  // Of the transport below.
  std::shared_ptr<net::Transport> transport_;
  std::string shown_;  // The last token, as the server saw it.
};

}  // namespace kube
