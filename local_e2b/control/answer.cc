#include "local_e2b/control/answer.h"

namespace local_e2b {

Refusal refuse(int status, std::string message, std::string error_code) {
  Refusal refusal;
  refusal.code = status == 404   ? base::ErrorCode::kNotFound
                 : status == 409 ? base::ErrorCode::kConflict
                 : status == 429 ? base::ErrorCode::kRateLimited
                 : status >= 500 ? base::ErrorCode::kUnavailable
                                 : base::ErrorCode::kInvalid;
  refusal.message = std::move(message);
  refusal.status = status;
  refusal.error_code = std::move(error_code);
  return refusal;
}

Refusal invalid(std::string message) { return refuse(400, "validation error: " + message); }

Refusal not_found(const std::string& sandbox_id) {
  return refuse(404, "Sandbox \"" + sandbox_id + "\" doesn't exist or you don't have access to it");
}

aio::HttpReply answer(int status, const base::Json& body) {
  return {.status = status,
          .fields = {{"Content-Type", "application/json"}},
          .body = base::to_text(body)};
}

aio::HttpReply answer(int status) { return {.status = status}; }

aio::HttpReply answer(const Refusal& refusal) {
  base::Json body = {{"code", refusal.status}, {"message", refusal.message}};
  if (!refusal.error_code.empty()) body["error_code"] = refusal.error_code;
  auto reply = answer(refusal.status, body);
  if (refusal.status == 500 || refusal.status == 504)
    reply.fields.emplace_back("Should-Retry", "false");
  return reply;
}

}  // namespace local_e2b
