#include "libs/e2b/wire.h"

#include <algorithm>

#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace e2b {
namespace {

using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;

std::optional<base::Milliseconds> parse_retry_after(const net::Response& response,
                                                    const std::string& text) {
  std::optional<base::Milliseconds> wait;
  if (const auto seconds = base::parse_integer(base::trim(text))) {
    wait = base::Seconds(std::clamp<std::int64_t>(*seconds, 0, kRetryAfterMax.count()));
  } else if (const auto until = base::parse_http_date(base::trim(text))) {
    if (const auto now = provider_time(response)) wait = *until - *now;
  }
  if (!wait) return std::nullopt;
  return std::clamp<base::Milliseconds>(*wait, base::Milliseconds(0), kRetryAfterMax);
}

State state_of(std::string_view word) {
  if (word == "running") return State::kRunning;
  if (word == "paused") return State::kPaused;
  return State::kOther;
}

// Absent and null are nothing; what is there must be a time.
Result<std::optional<base::WallTime>> time_at(const Json& item, const char* key) {
  const auto text = base::text_at(item, key);
  if (!text || text->empty()) return std::optional<base::WallTime>();
  const auto time = base::parse_rfc3339(*text);
  if (!time) return error(ErrorCode::kUnavailable, key, " is not a time");
  return std::optional(*time);
}

std::map<std::string, std::string> metadata_of(const Json& item) {
  std::map<std::string, std::string> metadata;
  if (const Json* pairs = base::object_at(item, "metadata"))
    for (const auto& [key, value] : pairs->items())
      if (value.is_string()) metadata[key] = value.get<std::string>();
  return metadata;
}

Result<Json> parse_object(std::string_view body) {
  auto parsed = base::parse_json(body);
  if (!parsed || !parsed->is_object())
    return error(ErrorCode::kUnavailable, "the answer is not a JSON object");
  return parsed;
}

std::string advice_for(int status) {
  if (status == 401 || status == 403) return " (check the provider's API key)";
  if (status >= 300 && status < 400) return " (a redirect; check the provider's API URL)";
  return "";
}

bool refuses_for_want_of_capacity(const Refusal& refusal) {
  return refusal.status == 503 && (refusal.error_code == "sandbox_capacity_unavailable" ||
                                   refusal.error_code == "sandbox_no_compatible_node");
}

CreateFailure::Kind create_kind_of(const Refusal& refusal) {
  using Kind = CreateFailure::Kind;
  const int status = refusal.status;
  if (refuses_for_want_of_capacity(refusal)) return Kind::kCapacity;
  if (status == 429) return refusal.has_retry_after ? Kind::kRate : Kind::kQuota;
  const bool in_doubt = status == 408 || status == 409 || status == 422;
  return status >= 400 && status < 500 && !in_doubt ? Kind::kRefused : Kind::kAmbiguous;
}

}  // namespace

std::string create_body(const NewSandbox& wanted, Version version) {
  Json body = {{"templateID", wanted.template_id},
               {"timeout", wanted.timeout.count()},
               {"autoPause", wanted.auto_pause},
               {"metadata", wanted.metadata},
               {"envVars", wanted.env}};
  if (version == Version::kV1) body["secure"] = true;  // v2 always is.
  return base::to_text(body);
}

std::string metadata_query(const std::map<std::string, std::string>& metadata) {
  const auto twice = [](const std::string& text) {
    return base::percent_encode(base::percent_encode(text));
  };
  std::vector<std::string> pairs;
  pairs.reserve(metadata.size());
  for (const auto& [key, value] : metadata) pairs.push_back(twice(key) + "=" + twice(value));
  return base::percent_encode(base::join(pairs, "&"));
}

Result<Handle> read_handle(std::string_view body) {
  TRY(const Json object, parse_object(body));
  Handle handle;
  handle.id = base::text_at(object, "sandboxID").value_or("");
  if (handle.id.empty()) return error(ErrorCode::kUnavailable, "sandboxID is missing");
  handle.envd_version = base::text_at(object, "envdVersion").value_or("");
  handle.envd_access_token = base::text_at(object, "envdAccessToken");
  handle.traffic_access_token = base::text_at(object, "trafficAccessToken");
  handle.domain = base::text_at(object, "domain");
  return handle;
}

Result<SandboxInfo> read_info(const Json& item) {
  SandboxInfo info;
  info.id = base::text_at(item, "sandboxID").value_or("");
  if (info.id.empty()) return error(ErrorCode::kUnavailable, "sandboxID is missing");
  const auto state = base::text_at(item, "state");
  if (!state) return error(ErrorCode::kUnavailable, "state is missing");
  info.state = state_of(*state);
  info.template_id = base::text_at(item, "templateID").value_or("");
  info.metadata = metadata_of(item);
  TRY(info.started_at, time_at(item, "startedAt"));
  TRY(info.end_at, time_at(item, "endAt"));
  info.envd_version = base::text_at(item, "envdVersion").value_or("");
  info.pause_mode = base::text_at(item, "pauseMode");
  return info;
}

Result<SandboxInfo> read_info_body(std::string_view body) {
  TRY(const Json object, parse_object(body));
  return read_info(object);
}

Refusal read_refusal(const net::Response& response) {
  Refusal refusal{.status = response.status};
  if (const auto header = response.headers.find("Retry-After")) {
    refusal.has_retry_after = true;
    refusal.retry_after = parse_retry_after(response, *header);
  }
  const auto body = base::parse_json(response.body);
  if (!body || !body->is_object()) return refusal;
  refusal.is_json = true;
  refusal.has_code = base::integer_at(*body, "code").has_value();
  refusal.error_code = base::text_at(*body, "error_code").value_or("");
  refusal.message = base::text_at(*body, "message").value_or("");
  return refusal;
}

bool lacks_route(const Refusal& refusal) {
  if (refusal.status == 405 || refusal.status == 501) return true;
  if (refusal.status != 404) return false;
  // The API's own 404 has a numeric code, but its router uses the same form for unknown routes.
  if (!refusal.has_code) return true;
  const std::string message = base::lower(refusal.message);
  return message.find("no matching operation") != std::string::npos ||
         message.find("page not found") != std::string::npos ||
         message.find("route not found") != std::string::npos;
}

base::Error error_of(std::string_view what, const Refusal& refusal, std::string_view secret) {
  std::string message = std::string(what) + ": the provider answered " +
                        std::to_string(refusal.status) + advice_for(refusal.status);
  if (!refusal.error_code.empty()) message += " " + net::tame(refusal.error_code, secret);
  if (!refusal.message.empty()) message += ": " + net::tame(refusal.message, secret);
  return {net::code_of_status(refusal.status), std::move(message), refusal.retry_after};
}

CreateFailure create_failure_of(std::string_view what, const Refusal& refusal,
                                std::string_view secret) {
  return CreateFailure{error_of(what, refusal, secret), create_kind_of(refusal)};
}

std::optional<base::WallTime> provider_time(const net::Response& response) {
  const auto date = response.headers.find("Date");
  if (!date) return std::nullopt;
  const auto time = base::parse_http_date(*date);
  if (!time) return std::nullopt;
  return *time;
}

}  // namespace e2b
