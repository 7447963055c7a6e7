#include "controller/prepare/executor_door.h"

#include <optional>
#include <utility>

#include "libs/base/log.h"
#include "libs/wire/expiry.h"
#include "libs/wire/token.h"

namespace controller {
namespace {

constexpr base::Milliseconds kTimeout{10'000};
// Whoever listens there may be an impostor: it gets no more of our memory than a health report
// needs.
constexpr std::size_t kReplyBytesMax = 64u << 10;

// Why the executor refuses, when it is the executor that speaks: its errors are JSON objects with
// the member "error" alone, see libs/wire/admin.h.
std::optional<std::string> why_executor_refuses(const net::Response& reply) {
  if (reply.status != 401 && reply.status != 409) return std::nullopt;
  const auto json = base::parse_json(reply.body);
  if (!json || json->size() != 1) return std::nullopt;
  return base::text_at(*json, "error");
}

std::optional<wire::TimeOfDay> says_expired(const net::Response& reply) {
  const auto json = base::parse_json(reply.body);
  const auto told = json ? wire::time_of_day_from_json(*json) : json.error();
  return told ? std::optional(*told) : std::nullopt;
}

// The edge reached the sandbox, and its port was closed: only this answer names both.
bool says_port_is_closed(const net::Response& reply) {
  if (reply.status != 502) return false;
  const auto json = base::parse_json(reply.body);
  return json && base::text_at(*json, "sandboxId") &&
         base::integer_at(*json, "port") == wire::kExecutorPort;
}

base::Error error_of(const net::Response& reply, const std::string& path,
                     const std::string& token) {
  const std::string answered = path + " with " + std::to_string(reply.status);
  if (const auto why = why_executor_refuses(reply))
    return base::error(base::ErrorCode::kDenied, "the executor answered ", answered, ": ",
                       net::tame(*why, token));
  if (reply.status == 401 && says_expired(reply))
    return base::error(base::ErrorCode::kUnavailable, "the executor answered ", answered,
                       ": it counts our token as ended, since its clock is not ours");
  if (reply.status == 401 || reply.status == 403)
    return base::error(base::ErrorCode::kConflict,
                       "the provider's edge, not the executor, answered ", answered,
                       "; its traffic token may be an old one");
  if (says_port_is_closed(reply))
    return base::error(base::ErrorCode::kNotFound,
                       "no executor listens inside the sandbox: the edge answered ", answered);
  return base::error(base::ErrorCode::kUnavailable, "the executor answered ", answered);
}

}  // namespace

HttpExecutorDoor::HttpExecutorDoor(net::Transport& transport, envd::Route route,
                                   std::string admin_key, std::string admin_token)
    : transport_(transport),
      route_(std::move(route)),
      admin_key_(std::move(admin_key)),
      admin_token_(std::move(admin_token)) {}

base::Result<wire::Health> HttpExecutorDoor::health(std::stop_token stop) {
  return ask("GET", "/v1/health", "", wire::health_from_json, stop);
}

base::Result<wire::Activity> HttpExecutorDoor::activity(std::stop_token stop) {
  return ask("GET", "/v1/activity", "", wire::activity_from_json, stop);
}

base::Result<wire::Health> HttpExecutorDoor::quiesce(const wire::Quiesce& quiesce,
                                                     std::stop_token stop) {
  return ask("POST", "/v1/quiesce", base::to_text(wire::to_json(quiesce)), wire::health_from_json,
             stop);
}

base::Result<wire::Health> HttpExecutorDoor::resumed(const wire::Resumed& resumed,
                                                     std::stop_token stop) {
  TRY(auto health, ask("POST", "/v1/resumed", base::to_text(wire::to_json(resumed)),
                       wire::health_from_json, stop));
  if (health.identity == resumed.identity && !health.quiesced) return health;
  // Believed, this would be told again at once, for ever.
  return base::error(base::ErrorCode::kUnavailable,
                     "the executor was told who it is and does not answer as that one");
}

net::Reply HttpExecutorDoor::send(const wire::Question& question, const std::string& token,
                                  std::stop_token stop) {
  net::Request request{.method = question.method,
                       .url = route_.url + question.path,
                       .headers = route_.headers,
                       .body = question.body,
                       .body_bytes_max = kReplyBytesMax};
  request.headers.add("Authorization", "Bearer " + token);
  request.headers.add(wire::kNonceField, question.nonce);
  if (!request.body.empty()) request.headers.add("Content-Type", "application/json");
  return transport_.send(request, kTimeout, stop);
}

// By the clock of an executor that counts our token as ended.
std::optional<base::WallTime> HttpExecutorDoor::its_time(const net::Response& reply,
                                                         const wire::Question& question) const {
  const std::string proof = reply.headers.find(wire::kProofField).value_or("");
  if (reply.status != 401 || !wire::is_proven(proof, admin_key_, question, reply.body))
    return std::nullopt;
  const auto told = says_expired(reply);
  if (!told) return std::nullopt;
  return base::WallTime(base::Milliseconds(told->now_ms));
}

// By a token that is good by its clock. Whether it has heard shows when it is asked again.
void HttpExecutorDoor::tell_time(base::WallTime its_time, std::stop_token stop) {
  auto claims = wire::unproven_claims(admin_token_);
  if (!claims) return;
  const base::WallTime now = claims->issued;
  base::log::warn("the clock of an executor differs from ours, which it is told",
                  {{"uid", claims->uid}, {"ahead_ms", (its_time - now).count()}});
  claims->expires += its_time - now;
  claims->issued = its_time;
  const wire::TimeOfDay time{now.time_since_epoch().count()};
  (void)send({wire::new_nonce(), "POST", "/v1/time", base::to_text(wire::to_json(time))},
             wire::sign(*claims, admin_key_), stop);
}

template <typename Answer>
base::Result<Answer> HttpExecutorDoor::ask(std::string method, const std::string& path,
                                           std::string body,
                                           base::Result<Answer> (*read)(const base::Json&),
                                           std::stop_token stop) {
  wire::Question question{wire::new_nonce(), std::move(method), path, std::move(body)};
  auto reply = send(question, admin_token_, stop);
  if (const auto its = reply ? its_time(*reply, question) : std::nullopt) {
    tell_time(*its, stop);
    question.nonce = wire::new_nonce();
    reply = send(question, admin_token_, stop);
  }
  if (!reply) return base::Error(reply.error());
  if (reply->status == 200) {
    TRY(const auto json, base::parse_json(reply->body));
    TRY(auto answer, read(json));
    const std::string proof = reply->headers.find(wire::kProofField).value_or("");
    if (wire::is_proven(proof, admin_key_, question, reply->body)) return answer;
    return base::error(base::ErrorCode::kDenied, "another than the executor answered ", path,
                       proof.empty() ? ": without a proof" : ": with a proof that is not good");
  }
  return error_of(*reply, path, admin_token_);
}

}  // namespace controller
