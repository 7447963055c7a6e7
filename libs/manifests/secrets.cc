#include "libs/manifests/secrets.h"

#include "libs/base/crypto.h"
#include "libs/manifests/record.h"

namespace manifests {

using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

Result<Done> Secrets::load() {
  TRY(const auto json, read_json_file(path_));
  if (!json || !json->is_array()) return Done{};
  std::lock_guard lock(mutex_);
  for (const Json& secret : *json) {
    Values values;
    if (const Json* encoded = base::object_at(secret, "data"))
      for (const auto& [key, value] : encoded->items())
        if (auto bytes = base::from_base64(value.is_string() ? value.get<std::string>() : ""))
          values[key] = *std::move(bytes);
    const api::Key key{base::text_at(secret, "namespace").value_or(""),
                       base::text_at(secret, "name").value_or("")};
    retained_[key] = values;
    secrets_[key] = std::move(values);
  }
  return Done{};
}

Result<bool> Secrets::take(const std::vector<ReadFile>& files,
                           const std::function<std::set<api::Key>()>& referred,
                           std::vector<yaml::Problem>& problems) {
  std::map<api::Key, Values> declared, retained;
  std::map<api::Key, std::string> first_file;
  for (const ReadFile& file : files)
    for (const Declared& object : file.reading->objects) {
      if (object.kind != Kind::kSecret) continue;
      if (declared.try_emplace(object.key, object.secret).second) {
        first_file[object.key] = file.name;
        continue;
      }
      problems.push_back({file.name, object.line, 1, "metadata.name",
                          "Secret " + api::to_text(object.key) + " stands in " +
                              first_file[object.key] + " already",
                          "remove one of the two, or rename it"});
    }
  std::map<api::Key, Values> before;
  {
    std::lock_guard lock(mutex_);
    before = secrets_;
  }
  std::optional<std::set<api::Key>> needed;
  for (const auto& [key, values] : before) {
    if (declared.contains(key)) continue;
    if (!needed) needed = referred();
    if (needed->contains(key)) retained[key] = values;
  }
  CHECK_OK(retain(retained));
  declared.insert(retained.begin(), retained.end());
  const bool changed = declared != before;
  std::lock_guard lock(mutex_);
  secrets_ = std::move(declared);
  return changed;
}

Result<Done> Secrets::retain(std::map<api::Key, Values> retained) {
  if (retained == retained_) return Done{};
  if (retained.empty()) {
    CHECK_OK(disk_.remove(path_));
  } else {
    Json json = Json::array();
    for (const auto& [key, values] : retained) {
      Json encoded = Json::object();
      for (const auto& [name, value] : values) encoded[name] = base::to_base64(value);
      json.push_back({{"namespace", key.space}, {"name", key.name}, {"data", encoded}});
    }
    CHECK_OK(disk_.write(path_, base::to_text(json), 0600));
  }
  retained_ = std::move(retained);
  return Done{};
}

Result<std::string> Secrets::find(const api::Key& secret, const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = secrets_.find(secret);
  if (found == secrets_.end())
    return base::error(ErrorCode::kNotFound, "there is no Secret ", api::to_text(secret),
                       " in the manifests");
  const auto value = found->second.find(key);
  if (value == found->second.end())
    return base::error(ErrorCode::kNotFound, "the Secret ", api::to_text(secret), " has no key \"",
                       key, "\"");
  return value->second;
}

}  // namespace manifests
