#pragma once

#include <string>
#include <variant>

#include "libs/aio/http_server.h"
#include "local_e2b/state/sandbox.h"

// Where a data-plane request wants to go, and whether it may. Pure.
namespace local_e2b {

struct Destination {
  std::string sandbox_id;
  int port = 0;
  // Asked for by a host of its own, so its client pools no other sandbox's requests with it.
  bool own_host = false;
  bool operator==(const Destination&) const = default;
};
// By the host "<port>-<id>.<domain>", or else by the two headers E2b-Sandbox-Id and
// E2b-Sandbox-Port; the text says why it is neither.
std::variant<Destination, std::string> find_destination(const aio::HttpHead& head);

// Of envd's routes, those that only the control plane may call.
bool is_internal(const std::string& path);

// Not let through: the reply that says why.
aio::HttpReply bad_destination(const std::string& why);
aio::HttpReply not_running(const Destination& to);
aio::HttpReply port_closed(const Destination& to);
aio::HttpReply refused(const Destination& to, int status, const std::string& message);

// Whether the request shows the token that traffic to a private sandbox's own ports needs.
bool may_pass(const Sandbox& sandbox, const Destination& to, const aio::HttpHead& head);
// Waking costs, so it needs envd's token on envd's port, too.
bool may_wake(const Sandbox& sandbox, const Destination& to, const aio::HttpHead& head);

}  // namespace local_e2b
