#include "controller/cluster/own_object.h"

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/kube/explain.h"

namespace controller {

using base::Done;
using base::Json;
using base::Result;

namespace {

// Data of a Secret is base64, that of a ConfigMap is text.
ObjectData data_of(const Json& object, bool is_secret) {
  ObjectData data;
  const Json* held = base::object_at(object, "data");
  if (!held) return data;
  for (const auto& [name, value] : held->items()) {
    if (!value.is_string()) continue;
    auto text = value.get<std::string>();
    if (!is_secret) {
      data[name] = std::move(text);
    } else if (auto bytes = base::from_base64(text)) {
      data[name] = *std::move(bytes);
    }
  }
  return data;
}

std::string names_in(const ObjectData& data) {
  constexpr std::size_t kShownMax = 5;
  std::vector<std::string> names;
  for (const auto& [name, value] : data)
    if (names.size() < kShownMax) names.push_back(name);
  if (names.empty()) return "nor any other";
  return "but " + base::join(names, ", ") + (data.size() > names.size() ? ", ..." : "");
}

// As its data has them: a Secret's in base64.
Json changes_of(const ObjectData& before, const ObjectData& after, bool is_secret) {
  Json changes = difference(before, after);
  for (auto& value : changes)
    if (is_secret && value.is_string()) value = base::to_base64(value.get<std::string>());
  return changes;
}

// Of a create, only the namespace can be what is not found.
kube::Refusal with_cure(kube::Refusal refusal, const std::string& space) {
  if (refusal.reason == kube::Reason::kNotFound)
    refusal.message +=
        "; create it (kubectl create namespace " + space + "), or name another by --own-namespace";
  return refusal;
}

}  // namespace

Json difference(const ObjectData& before, const ObjectData& after) {
  Json change = Json::object();
  for (const auto& [name, value] : before)
    if (!after.contains(name)) change[name] = nullptr;
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != value) change[name] = value;
  }
  return change;
}

Result<std::string> secret_value(kube::Client& client, const api::Key& secret,
                                 const std::string& key) {
  const auto found = client.get(kube::kSecrets, secret);
  if (!found && found.error().reason == kube::Reason::kNotFound)
    return base::error(base::ErrorCode::kNotFound, "there is no Secret ", api::to_text(secret),
                       "; create it: kubectl -n ", secret.space, " create secret generic ",
                       secret.name, " --from-literal=", key, "=...");
  if (!found) return kube::explain(found.error(), client.config());
  ObjectData data = data_of(*found, true);
  const auto value = data.find(key);
  if (value != data.end()) return std::move(value->second);
  return base::error(base::ErrorCode::kNotFound, "the Secret ", api::to_text(secret),
                     " has no key \"", key, "\", ", names_in(data),
                     "; add it, or refer to another key");
}

Result<OwnObject::Held> OwnObject::get(std::stop_token stop) const {
  const auto found = client_.get(resource_, key_, std::move(stop));
  if (!found && found.error().reason == kube::Reason::kNotFound) return Held{};
  if (!found) return base::Error(found.error());
  const api::Metadata identity = kube::identity_of(*found);
  return Held{{identity.uid, identity.resource_version}, data_of(*found, is_secret())};
}

kube::Answer<Done> OwnObject::put(const Held& before, const ObjectData& data,
                                  std::stop_token stop) const {
  Json object = {{"data", changes_of(before.data, data, is_secret())}};
  if (before.identity.uid.empty()) {
    object["apiVersion"] = kube::api_version_of(resource_);
    object["kind"] = resource_.kind;
    object["metadata"] = {{"name", key_.name},
                          {"namespace", key_.space},
                          {"labels", {{"app.kubernetes.io/managed-by", "sandfleet-controller"}}}};
    if (const auto made = client_.create(resource_, object, {}, std::move(stop)); !made)
      return with_cure(made.error(), key_.space);
  } else {
    CHECK_OK(client_.merge(resource_, key_, object, before.identity, {}, std::move(stop)));
  }
  return Done{};
}

Result<ObjectData> OwnObject::read(std::stop_token stop) const {
  TRY(Held held, get(std::move(stop)));
  return std::move(held.data);
}

Result<Done> OwnObject::edit(const std::function<Result<bool>(ObjectData&)>& change,
                             std::stop_token stop) const {
  for (int attempt = 1;; ++attempt) {
    TRY(const Held before, get(stop));
    ObjectData data = before.data;
    TRY(const bool changed, change(data));
    if (!changed) return Done{};
    const auto written = put(before, data, stop);
    if (written) return Done{};
    const base::ErrorCode code = written.error().code;
    const bool others_wrote = code == base::ErrorCode::kConflict ||
                              (code == base::ErrorCode::kNotFound && !before.identity.uid.empty());
    if (!others_wrote || attempt == kEditTriesMax) return base::Error(written.error());
  }
}

}  // namespace controller
