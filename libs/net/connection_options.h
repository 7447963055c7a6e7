#pragma once

#include <optional>
#include <string>

#include "libs/base/clock.h"

namespace net {

// How a transport connects, whichever library is beneath it.
struct ConnectionOptions {
  std::string user_agent = "sandfleet";
  base::Milliseconds connect_timeout{10'000};  // Resolving, connecting and TLS together.
  std::string ca_bundle = {};                  // PEM text; empty: the system's authorities.
  std::string client_certificate = {};         // PEM text; empty: none.
  std::string client_key = {};
  bool verify_server = true;         // False: anybody may answer; for tests of one's own machine.
  std::string tls_server_name = {};  // The name to ask for and to check; empty: the URL's host.
  // Nothing: http_proxy, https_proxy and no_proxy of the environment; empty: none.
  std::optional<std::string> proxy = {};
  int connections_max = 1024;  // Open at once; what exceeds it waits, within its own timeout.
  int connections_kept = 128;  // Idle ones in the pool.
  bool operator==(const ConnectionOptions&) const = default;
};

}  // namespace net
