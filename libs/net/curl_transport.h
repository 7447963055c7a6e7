#pragma once

#include <memory>

#include "libs/net/connection_options.h"
#include "libs/net/transport.h"

namespace net {

// The transport over libcurl: one thread drives every exchange; HTTP/2 where TLS offers it.
std::unique_ptr<Transport> curl_transport(ConnectionOptions options = {});

}  // namespace net
