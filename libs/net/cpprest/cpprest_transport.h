#pragma once

#include <memory>

#include "libs/net/connection_options.h"
#include "libs/net/transport.h"

namespace net {

// The transport over cpprestsdk, HTTP/1.1. One thread carries all such transports of a process,
// and no process may hold Boost 1.81's Asio beside it. Where the library leaves less than
// Transport promises:
// - Headers of one name arrive joined by ", ", and all of them in the order of their names.
// - A chunk, and a head, reach us whole. Over TLS what has come of them is bounded all the same
//   (kBodyBytesMax for a chunk of a stream); over plain HTTP only the timeout bounds it, and the
//   silence of a stream is that between two chunks. A reply that is not chunked comes in steps of
//   64 KiB.
// - An interim reply (103) ends the exchange as a failure.
// - A server that answers before it has read the whole upload is heard only after it, or not at
//   all when it closes.
// - A name that hangs in the resolver holds up other names and the end of the process, though no
//   timeout and no stop.
// - Proxies are plain HTTP ones without a user (the library leaks its password). What goes to
//   https:// through one opens a connection each time.
// - URLs with a user, or with an IPv6 address, are refused.
std::unique_ptr<Transport> cpprest_transport(ConnectionOptions options = {});

}  // namespace net
