#include "executor/envd/settings.h"

#include "libs/base/crypto.h"
#include "libs/base/time.h"

namespace executor {
namespace {

base::Error wrong(const char* field, std::string_view wanted) {
  return base::error(base::ErrorCode::kInvalid, "field '", field, "' must be ", wanted);
}

// Absent and null are the same.
base::Result<std::optional<std::string>> text(const base::Json& body, const char* field) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) return std::optional<std::string>();
  if (!found->is_string()) return wrong(field, "a string");
  return std::optional(found->get<std::string>());
}

base::Result<std::optional<std::map<std::string, std::string>>> text_map(const base::Json& body,
                                                                         const char* field) {
  std::optional<std::map<std::string, std::string>> values;
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) return values;
  if (!found->is_object()) return wrong(field, "a map of strings");
  values.emplace();
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return wrong(field, "a map of strings");
    (*values)[key] = value.get<std::string>();
  }
  return values;
}

base::Result<std::optional<base::WallTime>> time(const base::Json& body, const char* field) {
  TRY(const auto spelled, text(body, field));
  if (!spelled || spelled->empty()) return std::optional<base::WallTime>();
  const auto parsed = base::parse_rfc3339(*spelled);
  if (!parsed) return wrong(field, "an RFC 3339 time");
  return std::optional(*parsed);
}

}  // namespace

base::Result<EnvdSettings> apply_init(const EnvdSettings& settings, const base::Json& body) {
  if (!body.is_object()) return base::error(base::ErrorCode::kInvalid, "the body is no object");
  TRY(const auto token, text(body, "accessToken"));
  // The token guards itself: only who knows it may go on.
  if (settings.access_token && (!token || !base::equal_secrets(*settings.access_token, *token)))
    return base::error(base::ErrorCode::kDenied, "another access token is already set");
  TRY(const auto told_at, time(body, "timestamp"));
  if (settings.told_at && told_at && *told_at <= *settings.told_at) return settings;

  EnvdSettings next = settings;
  if (told_at) next.told_at = told_at;
  if (token && !token->empty()) next.access_token = token;
  TRY(auto env, text_map(body, "envVars"));
  if (env) next.env = std::move(*env);
  TRY(const auto user, text(body, "defaultUser"));
  if (user && !user->empty()) next.default_user = user;
  TRY(const auto workdir, text(body, "defaultWorkdir"));
  if (workdir && !workdir->empty()) next.default_workdir = *workdir;
  return next;
}

base::Json to_json(const EnvdSettings& settings) {
  base::Json json = {{"envVars", settings.env}, {"defaultWorkdir", settings.default_workdir}};
  if (settings.access_token) json["accessToken"] = *settings.access_token;
  if (settings.default_user) json["defaultUser"] = *settings.default_user;
  if (settings.told_at) json["timestamp"] = base::to_rfc3339(*settings.told_at);
  return json;
}

EnvdSettings settings_from_json(const base::Json& json) {
  auto settings = apply_init({}, json);
  return settings ? *std::move(settings) : EnvdSettings{};
}

std::map<std::string, std::string> layered(
    std::initializer_list<const std::map<std::string, std::string>*> layers) {
  std::map<std::string, std::string> merged;
  for (const auto* layer : layers)
    for (const auto& [name, value] : *layer) merged[name] = value;
  return merged;
}

}  // namespace executor
