#include "libs/wire/admin.h"

#include "libs/base/crypto.h"

namespace wire {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kKindBytesMax = 64;
constexpr std::size_t kTextBytesMax = 256;  // What answers may come from anyone inside a sandbox.

base::Error lacks(std::string_view what, std::string_view field, std::string_view kind) {
  return base::error(base::ErrorCode::kInvalid, what, ": \"", field, "\" must be ", kind);
}

base::Result<std::string> key_at(const base::Json& json, const char* field) {
  const auto hex = base::text_at(json, field);
  if (!hex) return lacks("start secrets", field, "64 hexadecimal digits");
  auto key = base::from_hex(*hex);
  if (!key || key->size() != kKeyBytes)
    return lacks("start secrets", field, "64 hexadecimal digits");
  return key;
}

base::Result<News> news_from_json(const base::Json& json) {
  const auto kind = base::text_at(json, "kind");
  const auto message = base::text_at(json, "message");
  if (!kind || kind->empty() || kind->size() > kKindBytesMax)
    return lacks("news", "kind", "a text of 1 to 64 bytes");
  if (!message || message->empty() || message->size() > kNewsBytesMax)
    return lacks("news", "message", "a text of 1 to 1024 bytes");
  return News{*kind, *message};
}

}  // namespace

base::Json to_json(const Identity& identity) {
  return {{"uid", identity.uid},
          {"epoch", identity.epoch},
          {"incarnation", identity.incarnation},
          {"run", identity.run}};
}

base::Json to_json(const Health& health) {
  return {{"instance", health.instance},
          {"version", health.version},
          {"identity", to_json(health.identity)},
          {"quiesced", health.quiesced}};
}

base::Json to_json(const Activity& activity) { return {{"idleMs", activity.idle_ms}}; }

base::Json to_json(const Quiesce& quiesce) {
  base::Json json = {{"deadlineSeconds", quiesce.deadline_seconds}};
  if (quiesce.if_idle_for_ms) json["ifIdleForMs"] = *quiesce.if_idle_for_ms;
  return json;
}

base::Json to_json(const Resumed& resumed) {
  base::Json json = {{"identity", to_json(resumed.identity)}, {"nowMs", resumed.now_ms}};
  if (resumed.news)
    json["news"] = {{"kind", resumed.news->kind}, {"message", resumed.news->message}};
  return json;
}

base::Json to_json(const StartSecrets& secrets) {
  return {{"uid", secrets.uid},
          {"epoch", secrets.epoch},
          {"attachKey", base::to_hex(secrets.attach_key)},
          {"adminKey", base::to_hex(secrets.admin_key)}};
}

base::Result<Identity> identity_from_json(const base::Json& json) {
  Identity identity;
  const auto uid = base::text_at(json, "uid");
  if (!uid || uid->empty()) return lacks("identity", "uid", "a text that is not empty");
  identity.uid = *uid;
  const std::pair<const char*, std::int64_t*> numbers[] = {
      {"epoch", &identity.epoch}, {"incarnation", &identity.incarnation}, {"run", &identity.run}};
  for (const auto& [name, field] : numbers) {
    const auto number = base::integer_at(json, name);
    if (!number || *number < 0) return lacks("identity", name, "a whole number of 0 or more");
    *field = *number;
  }
  return identity;
}

base::Result<Health> health_from_json(const base::Json& json) {
  const auto instance = base::text_at(json, "instance");
  const auto version = base::text_at(json, "version");
  const auto quiesced = base::bool_at(json, "quiesced");
  const base::Json* identity = base::object_at(json, "identity");
  if (!instance || instance->size() > kTextBytesMax)
    return lacks("health", "instance", "a text of at most 256 bytes");
  if (!version || version->size() > kTextBytesMax)
    return lacks("health", "version", "a text of at most 256 bytes");
  if (!quiesced) return lacks("health", "quiesced", "true or false");
  if (!identity) return lacks("health", "identity", "an object");
  TRY(auto known, identity_from_json(*identity));
  return Health{*instance, *version, std::move(known), *quiesced};
}

base::Result<Activity> activity_from_json(const base::Json& json) {
  const auto idle = base::integer_at(json, "idleMs");
  if (!idle || *idle < 0) return lacks("activity", "idleMs", "a whole number of 0 or more");
  return Activity{*idle};
}

base::Result<Quiesce> quiesce_from_json(const base::Json& json) {
  if (!json.is_object()) return base::error(base::ErrorCode::kInvalid, "quiesce: not an object");
  Quiesce quiesce;
  if (json.contains("deadlineSeconds")) {
    const auto deadline = base::integer_at(json, "deadlineSeconds");
    if (!deadline || *deadline < 1 || *deadline > kQuiesceSecondsMax)
      return lacks("quiesce", "deadlineSeconds",
                   "a whole number from 1 to " + std::to_string(kQuiesceSecondsMax));
    quiesce.deadline_seconds = *deadline;
  }
  if (json.contains("ifIdleForMs")) {
    quiesce.if_idle_for_ms = base::integer_at(json, "ifIdleForMs");
    if (!quiesce.if_idle_for_ms || *quiesce.if_idle_for_ms < 0)
      return lacks("quiesce", "ifIdleForMs", "a whole number of 0 or more");
  }
  return quiesce;
}

base::Result<Resumed> resumed_from_json(const base::Json& json) {
  const base::Json* identity = base::object_at(json, "identity");
  const auto now_ms = base::integer_at(json, "nowMs");
  if (!identity) return lacks("resumed", "identity", "an object");
  if (!now_ms || *now_ms < 0) return lacks("resumed", "nowMs", "Unix milliseconds");
  TRY(auto known, identity_from_json(*identity));
  Resumed resumed{std::move(known), *now_ms};
  if (json.contains("news") && !json["news"].is_null()) {
    TRY(resumed.news, news_from_json(json["news"]));
  }
  return resumed;
}

base::Result<StartSecrets> start_secrets_from_json(const base::Json& json) {
  StartSecrets secrets;
  const auto uid = base::text_at(json, "uid");
  const auto epoch = base::integer_at(json, "epoch");
  if (!uid || uid->empty()) return lacks("start secrets", "uid", "a text that is not empty");
  if (!epoch || *epoch < 0) return lacks("start secrets", "epoch", "a whole number of 0 or more");
  secrets.uid = *uid;
  secrets.epoch = *epoch;
  TRY(secrets.attach_key, key_at(json, "attachKey"));
  TRY(secrets.admin_key, key_at(json, "adminKey"));
  return secrets;
}

}  // namespace wire
