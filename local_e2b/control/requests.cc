#include "local_e2b/control/requests.h"

#include <algorithm>

#include "libs/base/strings.h"

namespace local_e2b {
namespace {

using base::Json;

constexpr std::int64_t kRefreshSecondsMin = 15, kRefreshSecondsMax = 3600;
constexpr std::int64_t kV1Timeout = 15, kV2Timeout = 300;
constexpr std::size_t kIdBytesMax = 64;  // Ids are remembered, in the log of requests for one.

// Each reads an optional member into `field`; a refusal when it is there with another type.
Outcome<base::Done> read(const Json& body, const char* key, std::int64_t& field) {
  const auto found = body.find(key);
  if (found == body.end() || found->is_null()) return base::Done{};
  if (!found->is_number_integer()) return invalid(std::string(key) + " must be an integer");
  const auto value = base::integer_at(body, key);
  if (!value || *value > INT32_MAX || *value < INT32_MIN)
    return invalid(std::string(key) + " must be a 32-bit integer");
  field = *value;
  return base::Done{};
}

Outcome<base::Done> read(const Json& body, const char* key, std::optional<bool>& field) {
  const auto found = body.find(key);
  if (found == body.end() || found->is_null()) return base::Done{};
  if (!found->is_boolean()) return invalid(std::string(key) + " must be true or false");
  field = found->get<bool>();
  return base::Done{};
}

Outcome<base::Done> read(const Json& body, const char* key, bool& field) {
  std::optional<bool> given;
  CHECK_OK(read(body, key, given));
  field = given.value_or(field);
  return base::Done{};
}

Outcome<base::Done> read(const Json& body, const char* key,
                         std::map<std::string, std::string>& field) {
  const auto found = body.find(key);
  if (found == body.end() || found->is_null()) return base::Done{};
  if (!found->is_object()) return invalid(std::string(key) + " must be an object of strings");
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) return invalid(std::string(key) + "." + name + " must be a string");
    field[name] = value.get<std::string>();
  }
  return base::Done{};
}

Outcome<base::Done> must_be_object(const Json& body) {
  if (!body.is_object()) return invalid("the body must be a JSON object");
  return base::Done{};
}

std::size_t bytes_of(const std::map<std::string, std::string>& pairs) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : pairs) bytes += key.size() + value.size();
  return bytes;
}

// What no process could have in its environment.
Outcome<base::Done> check_env(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty()) return invalid("envVars has an empty name");
    if (name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
      return invalid("envVars has a name with '=' or NUL in it");
    if (value.find('\0') != std::string::npos)
      return invalid("envVars." + name + " has a NUL in it");
  }
  return base::Done{};
}

Outcome<base::Done> check_sizes(const CreateRequest& request) {
  if (request.metadata.size() > kMetadataPairsMax)
    return invalid("metadata has more than " + std::to_string(kMetadataPairsMax) + " pairs");
  if (bytes_of(request.metadata) > kMetadataBytesMax)
    return invalid("metadata is larger than " + std::to_string(kMetadataBytesMax) + " bytes");
  if (bytes_of(request.env) > kEnvBytesMax)
    return invalid("envVars are larger than " + std::to_string(kEnvBytesMax) + " bytes");
  return base::Done{};
}

Outcome<base::Done> check_timeout(std::int64_t seconds, std::int64_t least,
                                  std::int64_t run_seconds_max) {
  if (seconds < least) return invalid("timeout must be at least " + std::to_string(least));
  if (seconds > run_seconds_max)
    return refuse(400,
                  "Timeout cannot be greater than " + std::to_string(run_seconds_max) + " seconds");
  return base::Done{};
}

Outcome<base::Done> read_auto_resume(const Json& body, CreateRequest& request) {
  const auto found = body.find("autoResume");
  if (found == body.end() || found->is_null()) return base::Done{};
  if (!found->is_object()) return invalid("autoResume must be an object with enabled");
  return read(*found, "enabled", request.auto_resume);
}

// What a memory-less pause would need is not here yet.
Outcome<base::Done> check_auto_pause_memory(const Json& body, const CreateRequest& request) {
  bool memory = true;
  CHECK_OK(read(body, "autoPauseMemory", memory));
  if (memory) return base::Done{};
  if (!request.auto_pause) return refuse(400, "autoPauseMemory needs autoPause");
  if (request.auto_resume) return refuse(400, "autoPauseMemory false excludes autoResume");
  return refuse(400, "autoPauseMemory false is not supported yet");
}

Outcome<base::Done> read_network(const Json& body, CreateRequest& request) {
  CHECK_OK(read(body, "allow_internet_access", request.allow_internet_access));
  const auto found = body.find("network");
  if (found == body.end() || found->is_null()) return base::Done{};
  if (!found->is_object()) return invalid("network must be an object");
  CHECK_OK(read(*found, "allowPublicTraffic", request.allow_public_traffic));
  if (found->contains("egressProxy") && !(*found)["egressProxy"].is_null())
    return refuse(403, "network.egressProxy is not available here");
  request.network = *found;
  return base::Done{};
}

Outcome<base::Done> refuse_unsupported(const Json& body) {
  for (const char* key : {"volumeMounts", "iam"}) {
    const auto found = body.find(key);
    if (found != body.end() && !found->is_null() && !found->empty())
      return refuse(400, std::string(key) + " is not supported here");
  }
  return base::Done{};
}

}  // namespace

Outcome<std::string> resolve_template(std::string_view id) {
  const std::string whole = base::lower(base::trim(id));
  const auto slash = whole.find('/');
  std::string alias = slash == std::string::npos ? whole : whole.substr(slash + 1);
  const auto colon = alias.find(':');
  const std::string tag = colon == std::string::npos ? "default" : alias.substr(colon + 1);
  alias = alias.substr(0, colon);
  if ((alias == "base" || alias == "base-executor") && tag == "default") return alias;
  return refuse(404, "template '" + std::string(id) +
                         "' not found: this provider has base and base-executor");
}

Outcome<CreateRequest> parse_create(const Json& body, Version version,
                                    std::int64_t run_seconds_max) {
  CHECK_OK(must_be_object(body));
  const auto id = base::text_at(body, "templateID");
  if (!id) return invalid("templateID is required and must be a string");
  CreateRequest request;
  request.timeout_seconds = version == Version::kV1 ? kV1Timeout : kV2Timeout;
  CHECK_OK(read(body, "timeout", request.timeout_seconds));
  CHECK_OK(check_timeout(request.timeout_seconds, 1, run_seconds_max));
  bool secure = true;  // Whatever it says: every sandbox has a token.
  CHECK_OK(read(body, "secure", secure));
  CHECK_OK(read(body, "autoPause", request.auto_pause));
  CHECK_OK(read_auto_resume(body, request));
  CHECK_OK(check_auto_pause_memory(body, request));
  CHECK_OK(read_network(body, request));
  CHECK_OK(read(body, "metadata", request.metadata));
  CHECK_OK(read(body, "envVars", request.env));
  CHECK_OK(check_env(request.env));
  CHECK_OK(check_sizes(request));
  CHECK_OK(refuse_unsupported(body));
  TRY(request.template_id, resolve_template(*id));
  return request;
}

namespace {

Outcome<base::Done> refuse_reboot(const Json& body) {
  bool memory = true;
  CHECK_OK(read(body, "memory", memory));
  if (!memory) return refuse(400, "memory false is not supported yet");
  return base::Done{};
}

}  // namespace

Outcome<ConnectRequest> parse_connect(const Json& body, Version version,
                                      std::int64_t run_seconds_max) {
  CHECK_OK(must_be_object(body));
  ConnectRequest request{.timeout_seconds = kV2Timeout};
  if (version == Version::kV1 && body.value("timeout", Json()).is_null())
    return invalid("timeout is required");
  CHECK_OK(read(body, "timeout", request.timeout_seconds));
  const std::int64_t least = version == Version::kV2 ? 1 : 0;
  CHECK_OK(check_timeout(request.timeout_seconds, least, run_seconds_max));
  CHECK_OK(refuse_reboot(body));
  return request;
}

Outcome<ConnectRequest> parse_resume(const Json& body, std::int64_t run_seconds_max) {
  CHECK_OK(must_be_object(body));
  ConnectRequest request{.timeout_seconds = kV1Timeout};
  CHECK_OK(read(body, "timeout", request.timeout_seconds));
  CHECK_OK(check_timeout(request.timeout_seconds, 0, run_seconds_max));
  CHECK_OK(refuse_reboot(body));
  return request;
}

Outcome<base::Done> parse_pause(const Json& body) {
  CHECK_OK(must_be_object(body));
  bool healthy_guest = false;
  CHECK_OK(read(body, "requireHealthyGuest", healthy_guest));
  return refuse_reboot(body);
}

Outcome<std::int64_t> parse_timeout(const Json& body) {
  CHECK_OK(must_be_object(body));
  std::int64_t seconds = -1;
  CHECK_OK(read(body, "timeout", seconds));
  if (seconds < 0) return invalid("timeout is required and must be at least 0");
  return seconds;
}

Outcome<std::int64_t> parse_refresh(const Json& body) {
  CHECK_OK(must_be_object(body));
  std::int64_t seconds = kRefreshSecondsMin;
  CHECK_OK(read(body, "duration", seconds));
  if (seconds < 0 || seconds > kRefreshSecondsMax)
    return invalid("duration must be from 0 to " + std::to_string(kRefreshSecondsMax));
  return std::max(seconds, kRefreshSecondsMin);
}

Outcome<std::string> parse_sandbox_id(std::string_view segment) {
  const auto parts = base::split(segment, '-');
  const auto lower_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  const bool good = parts.size() <= 2 && !parts[0].empty() && segment.size() <= kIdBytesMax &&
                    std::all_of(parts[0].begin(), parts[0].end(), lower_or_digit);
  if (!good) return refuse(400, "Invalid sandbox ID");
  return parts[0];
}

}  // namespace local_e2b
