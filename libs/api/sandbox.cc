#include "libs/api/sandbox.h"

#include <algorithm>

#include "libs/api/annotations.h"
#include "libs/api/fields.h"
#include "libs/base/time.h"

namespace api {

using base::Json;

std::string to_text(const Key& key) {
  return key.space.empty() ? key.name : key.space + "/" + key.name;
}

std::string to_text(const Attempt& attempt) {
  return base::to_text(
      Json{{"nonce", attempt.nonce}, {"epoch", attempt.epoch}, {"number", attempt.number}});
}

std::optional<Attempt> attempt_of(const Metadata& metadata) {
  const auto json = base::parse_json(annotation_of(metadata, kAttemptAnnotation));
  if (!json) return std::nullopt;
  const auto nonce = base::text_at(*json, "nonce");
  const auto epoch = base::integer_at(*json, "epoch");
  const auto number = base::integer_at(*json, "number");
  if (!nonce || nonce->empty() || !epoch || !number) return std::nullopt;
  return Attempt{*nonce, *epoch, *number};
}

const Condition* find_condition(const SandboxStatus& status, std::string_view type) {
  for (const Condition& condition : status.conditions)
    if (condition.type == type) return &condition;
  return nullptr;
}

void set_condition(std::vector<Condition>& conditions, Condition wanted) {
  const auto found = std::ranges::find(conditions, wanted.type, &Condition::type);
  if (found == conditions.end()) {
    conditions.push_back(std::move(wanted));
    return;
  }
  if (found->status == wanted.status) wanted.last_transition = found->last_transition;
  *found = std::move(wanted);
}

namespace {

Json to_json(const std::vector<EnvVar>& env) {
  Json json = Json::array();
  for (const EnvVar& variable : env) {
    Json item = {{"name", variable.name}};
    if (variable.value) item["value"] = *variable.value;
    if (variable.secret)
      item["valueFrom"] = {
          {"secretKeyRef", {{"name", variable.secret->name}, {"key", variable.secret->key}}}};
    json.push_back(std::move(item));
  }
  return json;
}

Json to_json(const SandboxSpec::Lifecycle& lifecycle) {
  Json json = Json::object();
  if (lifecycle.max_lifetime) json["maxLifetimeSeconds"] = lifecycle.max_lifetime->count();
  if (lifecycle.shutdown_time) json["shutdownTime"] = base::to_rfc3339(*lifecycle.shutdown_time);
  if (lifecycle.ttl_after_terminated)
    json["ttlSecondsAfterTerminated"] = lifecycle.ttl_after_terminated->count();
  if (lifecycle.idle) json["idleSeconds"] = lifecycle.idle->count();
  json["idleAction"] = to_word(lifecycle.idle_action);
  json["wakeOnAttach"] = lifecycle.wake_on_attach;
  return json;
}

Json to_json(const std::vector<SandboxStatus::Notice>& notices) {
  Json json = Json::array();
  for (const auto& notice : notices)
    json.push_back({{"number", notice.number},
                    {"time", base::to_rfc3339(notice.time)},
                    {"text", notice.text}});
  return json;
}

SandboxSpec spec_from(Fields fields) {
  SandboxSpec spec;
  spec.provider = fields.inside("providerRef").text("name", spec.provider);
  spec.template_id = fields.inside("template").text("id");
  spec.desired_state = fields.word("desiredState", spec.desired_state);
  spec.deletion_policy = fields.word("deletionPolicy", spec.deletion_policy);
  Fields alive = fields.inside("keepAlive");
  spec.keep_alive.timeout = alive.seconds("timeoutSeconds").value_or(spec.keep_alive.timeout);
  spec.keep_alive.heartbeat = alive.seconds("heartbeatSeconds").value_or(spec.keep_alive.heartbeat);
  spec.keep_alive.on_timeout = alive.word("onTimeout", spec.keep_alive.on_timeout);
  Fields lifecycle = fields.inside("lifecycle");
  spec.lifecycle.max_lifetime = lifecycle.seconds("maxLifetimeSeconds");
  spec.lifecycle.shutdown_time = lifecycle.time("shutdownTime");
  spec.lifecycle.ttl_after_terminated = lifecycle.seconds("ttlSecondsAfterTerminated");
  spec.lifecycle.idle = lifecycle.seconds("idleSeconds");
  spec.lifecycle.idle_action = lifecycle.word("idleAction", spec.lifecycle.idle_action);
  spec.lifecycle.wake_on_attach = lifecycle.yes("wakeOnAttach", spec.lifecycle.wake_on_attach);
  for (Fields& item : fields.items("env")) {
    EnvVar variable{item.text("name"), item.optional_text("value")};
    if (item.has("valueFrom")) {
      Fields secret = item.inside("valueFrom").inside("secretKeyRef");
      variable.secret = EnvVar::SecretKey{secret.text("name"), secret.text("key")};
    }
    spec.env.push_back(std::move(variable));
  }
  spec.provider_metadata = fields.texts_by_name("providerMetadata");
  return spec;
}

SandboxStatus status_from(Fields fields) {
  SandboxStatus status;
  status.observed_generation = fields.integer("observedGeneration", 0);
  status.conditions = conditions_from(fields.items("conditions"));
  status.state = fields.text("state");
  status.sandbox_id = fields.text("sandboxID");
  status.epoch = fields.integer("epoch", 0);
  status.incarnation = fields.integer("incarnation", 0);
  status.run = fields.integer("run", 0);
  status.paused_by = fields.word("pausedBy", PausedBy::kNobody);
  status.wake_seen = fields.text("wakeSeen");
  status.ended_by = fields.word("endedBy", EndedBy::kNobody);
  Fields endpoint = fields.inside("endpoint");
  status.endpoint_url = endpoint.text("url");
  status.endpoint_routing = endpoint.text("routing");
  status.envd_version = fields.text("envdVersion");
  status.start_time = fields.time("startTime");
  status.terminated_time = fields.time("terminatedTime");
  for (Fields& item : fields.items("notices"))
    status.notices.push_back({item.integer("number", 0),
                              item.time("time").value_or(base::WallTime{}), item.text("text")});
  return status;
}

}  // namespace

Json to_json(const SandboxSpec& spec) {
  Json json = {{"providerRef", {{"name", spec.provider}}},
               {"template", {{"id", spec.template_id}}},
               {"desiredState", to_word(spec.desired_state)},
               {"deletionPolicy", to_word(spec.deletion_policy)},
               {"keepAlive",
                {{"timeoutSeconds", spec.keep_alive.timeout.count()},
                 {"heartbeatSeconds", spec.keep_alive.heartbeat.count()},
                 {"onTimeout", to_word(spec.keep_alive.on_timeout)}}}};
  if (spec.lifecycle != SandboxSpec::Lifecycle{}) json["lifecycle"] = to_json(spec.lifecycle);
  if (!spec.env.empty()) json["env"] = to_json(spec.env);
  if (!spec.provider_metadata.empty()) json["providerMetadata"] = spec.provider_metadata;
  return json;
}

Json to_json(const SandboxStatus& status) {
  Json json = {{"conditions", to_json(status.conditions)}};
  const auto put_number = [&json](const char* key, std::int64_t value) {
    if (value != 0) json[key] = value;
  };
  const auto put_text = [&json](const char* key, std::string_view value) {
    if (!value.empty()) json[key] = value;
  };
  put_number("observedGeneration", status.observed_generation);
  put_text("state", status.state);
  put_text("sandboxID", status.sandbox_id);
  put_number("epoch", status.epoch);
  put_number("incarnation", status.incarnation);
  put_number("run", status.run);
  put_text("pausedBy", to_word(status.paused_by));
  put_text("wakeSeen", status.wake_seen);
  put_text("endedBy", to_word(status.ended_by));
  if (!status.endpoint_url.empty()) json["endpoint"]["url"] = status.endpoint_url;
  if (!status.endpoint_routing.empty()) json["endpoint"]["routing"] = status.endpoint_routing;
  put_text("envdVersion", status.envd_version);
  if (status.start_time) json["startTime"] = base::to_rfc3339(*status.start_time);
  if (status.terminated_time) json["terminatedTime"] = base::to_rfc3339(*status.terminated_time);
  if (!status.notices.empty()) json["notices"] = to_json(status.notices);
  return json;
}

Json to_json(const Sandbox& sandbox) {
  return {{"apiVersion", kGroupVersion},
          {"kind", "Sandbox"},
          {"metadata", to_json(sandbox.metadata)},
          {"spec", to_json(sandbox.spec)},
          {"status", to_json(sandbox.status)}};
}

base::Result<Sandbox> sandbox_from_json(const Json& json) {
  if (auto wrong = check_kind(json, "Sandbox")) return *wrong;
  std::optional<base::Error> failure;
  Fields object(json, "", failure);
  Sandbox read{metadata_from(object.inside("metadata")), spec_from(object.inside("spec")),
               status_from(object.inside("status"))};
  if (failure) return *failure;
  return read;
}

}  // namespace api
