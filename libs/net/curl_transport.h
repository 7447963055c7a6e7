#pragma once

#include <memory>
#include <string>

#include "libs/net/transport.h"

namespace net {

struct CurlOptions {
  std::string user_agent = "sandfleet";
  base::Milliseconds connect_timeout{10'000};  // Resolving, connecting and TLS together.
  std::string ca_bundle = {};                  // PEM text; empty: the system's authorities.
  std::string client_certificate = {};         // PEM text; empty: none.
  std::string client_key = {};
  // Nothing: http_proxy, https_proxy and no_proxy of the environment; empty: none.
  std::optional<std::string> proxy = {};
  int connections_max = 1024;  // Open at once; what exceeds it waits, within its own timeout.
  int connections_kept = 128;  // Idle ones in the pool.
};

// The transport over libcurl: one thread drives every exchange; HTTP/2 where TLS offers it.
std::unique_ptr<Transport> curl_transport(CurlOptions options = {});

}  // namespace net
