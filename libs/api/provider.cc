#include "libs/api/provider.h"

#include "libs/api/fields.h"

namespace api {

using base::Json;

namespace {

ProviderSpec spec_from(Fields fields) {
  ProviderSpec spec;
  Fields control = fields.inside("api");
  spec.api_url = control.text("url");
  spec.ca_bundle = control.text("caBundle");
  Fields data = fields.inside("data");
  spec.data_url = data.text("url");
  spec.routing = data.word("routing", spec.routing);
  if (fields.has("credentialsSecretRef")) {
    Fields secret = fields.inside("credentialsSecretRef");
    spec.credentials = ProviderSpec::SecretRef{};
    spec.credentials->name = secret.text("name");
    spec.credentials->key = secret.text("key", spec.credentials->key);
  }
  spec.settle = fields.seconds("settleSeconds").value_or(spec.settle);
  spec.first_lease = fields.seconds("firstLeaseSeconds").value_or(spec.first_lease);
  return spec;
}

Json to_json(const ProviderSpec& spec) {
  Json json = {{"api", {{"url", spec.api_url}}},
               {"data", {{"routing", to_word(spec.routing)}}},
               {"settleSeconds", spec.settle.count()},
               {"firstLeaseSeconds", spec.first_lease.count()}};
  if (!spec.ca_bundle.empty()) json["api"]["caBundle"] = spec.ca_bundle;
  if (!spec.data_url.empty()) json["data"]["url"] = spec.data_url;
  if (spec.credentials)
    json["credentialsSecretRef"] = {{"name", spec.credentials->name},
                                    {"key", spec.credentials->key}};
  return json;
}

}  // namespace

Json to_json(const ProviderStatus& status) {
  Json json = {{"conditions", to_json(status.conditions)}};
  if (status.observed_generation != 0) json["observedGeneration"] = status.observed_generation;
  return json;
}

Json to_json(const SandboxProvider& provider) {
  return {{"apiVersion", kGroupVersion},
          {"kind", "SandboxProvider"},
          {"metadata", to_json(provider.metadata)},
          {"spec", to_json(provider.spec)},
          {"status", to_json(provider.status)}};
}

base::Result<SandboxProvider> provider_from_json(const Json& json) {
  if (auto wrong = check_kind(json, "SandboxProvider")) return *wrong;
  std::optional<base::Error> failure;
  Fields object(json, "", failure);
  SandboxProvider read{metadata_from(object.inside("metadata")), spec_from(object.inside("spec"))};
  Fields status = object.inside("status");
  read.status.observed_generation = status.integer("observedGeneration", 0);
  read.status.conditions = conditions_from(status.items("conditions"));
  if (failure) return *failure;
  return read;
}

}  // namespace api
