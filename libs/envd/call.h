#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "libs/base/json.h"
#include "libs/envd/client.h"
#include "libs/envd/connect.h"

// One call to envd, whatever it is about: who calls, the request, and what its answer means.
namespace envd {

struct Caller {  // All outlive it.
  net::Transport& transport;
  const Route& route;
  const ClientOptions& options;
};

// Whom a call is made as: old daemons have no default user.
std::string user_or_default(const std::string& user, const ClientOptions& options);

net::Request request_to(const Route& route, const char* method, const std::string& path);
// To a Connect service; its body and Content-Type are the caller's.
net::Request call_to(const Caller& caller, const char* rpc, const std::string& user);

// No answer. One that could not even be sent, or was the first on its way, may have a wrong way.
base::Error unanswered(std::string_view what, const net::Failure& failure, Side side,
                       const ClientOptions& options);
// Why there is no success, if there is none.
std::optional<base::Error> refusal_of(std::string_view what, const net::Reply& reply, Side side,
                                      const ClientOptions& options);

// One unary call: its message as a JSON object, or why there is none.
base::Result<base::Json> unary(const Caller& caller, const char* rpc, const std::string& user,
                               const std::string& what, const base::Json& message,
                               std::stop_token stop);

}  // namespace envd
