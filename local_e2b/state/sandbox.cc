#include "local_e2b/state/sandbox.h"

#include <array>

#include "libs/base/time.h"

namespace local_e2b {
namespace {

constexpr std::array kPhaseWords{"starting", "running", "pausing", "paused", "resuming", "killing"};

base::Result<Phase> phase_from_word(const std::string& word) {
  for (std::size_t i = 0; i < kPhaseWords.size(); ++i)
    if (word == kPhaseWords[i]) return static_cast<Phase>(i);
  return base::error(base::ErrorCode::kInvalid, "no such phase: ", word);
}

base::Result<std::string> required(const base::Json& json, const char* key) {
  if (auto text = base::text_at(json, key)) return *text;
  return base::error(base::ErrorCode::kInvalid, "a sandbox's record lacks ", key);
}

}  // namespace

std::string_view to_word(Phase phase) { return kPhaseWords[static_cast<std::size_t>(phase)]; }

base::Json to_json(const Sandbox& sandbox) {
  base::Json json = {{"id", sandbox.id},
                     {"team", sandbox.team},
                     {"template", sandbox.template_id},
                     {"phase", to_word(sandbox.phase)},
                     {"metadata", sandbox.metadata},
                     {"autoPause", sandbox.auto_pause},
                     {"autoResume", sandbox.auto_resume},
                     {"timeoutSeconds", sandbox.timeout_seconds},
                     {"allowPublicTraffic", sandbox.allow_public_traffic},
                     {"network", sandbox.network},
                     {"startedAt", base::to_rfc3339(sandbox.started_at)},
                     {"endAt", base::to_rfc3339(sandbox.end_at)},
                     {"envdToken", sandbox.envd_token},
                     {"trafficToken", sandbox.traffic_token},
                     {"envdVersion", sandbox.envd_version},
                     {"idempotencyKey", sandbox.idempotency_key},
                     {"idempotencyFingerprint", sandbox.idempotency_fingerprint}};
  if (sandbox.allow_internet_access) json["allowInternetAccess"] = *sandbox.allow_internet_access;
  if (sandbox.box) json["box"] = to_json(*sandbox.box);
  return json;
}

base::Result<Sandbox> sandbox_from_json(const base::Json& json) {
  Sandbox sandbox;
  TRY(sandbox.id, required(json, "id"));
  TRY(sandbox.team, required(json, "team"));
  TRY(sandbox.template_id, required(json, "template"));
  TRY(const std::string phase, required(json, "phase"));
  TRY(sandbox.phase, phase_from_word(phase));
  TRY(const std::string started_at, required(json, "startedAt"));
  TRY(sandbox.started_at, base::parse_rfc3339(started_at));
  TRY(const std::string end_at, required(json, "endAt"));
  TRY(sandbox.end_at, base::parse_rfc3339(end_at));
  if (const auto* metadata = base::object_at(json, "metadata"))
    for (const auto& [key, value] : metadata->items())
      if (value.is_string()) sandbox.metadata[key] = value.get<std::string>();
  sandbox.auto_pause = base::bool_at(json, "autoPause").value_or(false);
  sandbox.auto_resume = base::bool_at(json, "autoResume").value_or(false);
  sandbox.timeout_seconds = base::integer_at(json, "timeoutSeconds").value_or(0);
  sandbox.allow_internet_access = base::bool_at(json, "allowInternetAccess");
  sandbox.allow_public_traffic = base::bool_at(json, "allowPublicTraffic").value_or(true);
  if (const auto* network = base::object_at(json, "network")) sandbox.network = *network;
  sandbox.envd_token = base::text_at(json, "envdToken").value_or("");
  sandbox.traffic_token = base::text_at(json, "trafficToken").value_or("");
  sandbox.envd_version = base::text_at(json, "envdVersion").value_or("");
  sandbox.idempotency_key = base::text_at(json, "idempotencyKey").value_or("");
  sandbox.idempotency_fingerprint = base::text_at(json, "idempotencyFingerprint").value_or("");
  if (const auto* box = base::object_at(json, "box")) {
    TRY(sandbox.box, box_record_from_json(*box));
  }
  return sandbox;
}

}  // namespace local_e2b
