#include "libs/envd/call.h"

#include "libs/base/crypto.h"
#include "libs/base/json.h"

namespace envd {

using base::ErrorCode;

std::string user_or_default(const std::string& user, const ClientOptions& options) {
  if (!user.empty() || version_at_least(options.envd_version, "0.4.0")) return user;
  return "user";
}

net::Request request_to(const Route& route, const char* method, const std::string& path) {
  return {.method = method, .url = route.url + path, .headers = route.headers};
}

net::Request call_to(const Caller& caller, const char* rpc, const std::string& user) {
  net::Request request = request_to(caller.route, "POST", std::string("/") + rpc);
  request.headers.add("Connect-Protocol-Version", "1");
  request.headers.add("Accept", "application/json");
  if (const std::string name = user_or_default(user, caller.options); !name.empty())
    request.headers.add("Authorization", "Basic " + base::to_base64(name + ":"));
  return request;
}

base::Error unanswered(std::string_view what, const net::Failure& failure, Side side,
                       const ClientOptions& options) {
  base::Error error = net::error_of(what, failure);
  const bool lost = (!failure.sent || side == Side::kHealth) &&
                    failure.code != ErrorCode::kCancelled && !options.advice.empty();
  if (lost) error.message += "; " + options.advice;
  return error;
}

std::optional<base::Error> refusal_of(std::string_view what, const net::Reply& reply, Side side,
                                      const ClientOptions& options) {
  if (!reply) return unanswered(what, reply.error(), side, options);
  if (reply->status == 200) return std::nullopt;
  return error_of(what, *reply, side, options.advice);
}

base::Result<base::Json> unary(const Caller& caller, const char* rpc, const std::string& user,
                               const std::string& what, const base::Json& message,
                               std::stop_token stop) {
  net::Request request = call_to(caller, rpc, user);
  request.headers.add("Content-Type", "application/json");
  request.body = base::to_text(message);
  const net::Reply reply = caller.transport.send(request, caller.options.timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kServices, caller.options)) return *refusal;
  auto answer = base::parse_json(reply->body);
  if (!answer || !answer->is_object())
    return base::error(ErrorCode::kUnavailable, what, ": the answer is not a JSON object");
  return answer;
}

}  // namespace envd
