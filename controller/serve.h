#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "controller/options.h"
#include "libs/base/result.h"
#include "libs/metrics/registry.h"
#include "libs/net/server/http_server.h"

namespace controller {

// SIGTERM and SIGINT, taken from every thread that begins after it and handed to wait().
class Signals {
 public:
  Signals();
  void wait() const;
  // As if somebody had sent one.
  void raise() const;

 private:
  sigset_t set_;
};

// /metrics, /healthz (it lives) and /readyz (`trouble` is empty).
base::Result<std::unique_ptr<net::HttpServer>> serve(const Options& options,
                                                     metrics::Registry& registry,
                                                     std::function<std::string()> trouble);

// Logs the address, and writes it to the ready file when one is asked for.
base::Result<base::Done> say_ready(const Options& options, const net::HttpServer& server);

}  // namespace controller
