#include "libs/api/fields.h"

#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace api {

using base::ErrorCode;
using base::Json;

Fields::Fields(const Json& object, std::string path, std::optional<base::Error>& failure)
    : object_(&object), path_(std::move(path)), failure_(&failure) {
  if (!object.is_object()) refuse("", "must be an object");
}

const Json* Fields::find(const char* key) const {
  if (!object_->is_object()) return nullptr;
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void Fields::refuse(const std::string& key, const std::string& why) {
  if (*failure_) return;
  const std::string dot = path_.empty() || key.empty() ? "" : ".";
  const std::string where = path_ + dot + key;
  *failure_ = base::error(ErrorCode::kInvalid, where.empty() ? "the document" : where, " ", why);
}

void Fields::refuse_word(const char* key, const std::string& word,
                         const std::vector<std::string>& choices) {
  refuse(key, "is \"" + word + "\", which is none of " + base::join(choices, ", "));
}

std::optional<std::string> Fields::optional_text(const char* key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  refuse(key, "must be text");
  return std::nullopt;
}

std::string Fields::text(const char* key, std::string otherwise) {
  return optional_text(key).value_or(std::move(otherwise));
}

std::int64_t Fields::integer(const char* key, std::int64_t otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (value->is_number_integer()) return value->get<std::int64_t>();
  refuse(key, "must be a whole number");
  return otherwise;
}

bool Fields::yes(const char* key, bool otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(key, "must be true or false");
  return otherwise;
}

std::optional<base::Seconds> Fields::seconds(const char* key) {
  if (!has(key)) return std::nullopt;
  return base::Seconds(integer(key, 0));
}

std::optional<base::WallTime> Fields::time(const char* key) {
  const auto written = optional_text(key);
  if (!written) return std::nullopt;
  const auto time = base::parse_rfc3339(*written);
  if (time) return *time;
  refuse(key, "is \"" + *written + "\", which is not a time such as 2026-11-29T17:46:31Z");
  return std::nullopt;
}

std::map<std::string, std::string> Fields::texts_by_name(const char* key) {
  std::map<std::string, std::string> read;
  const Json* value = find(key);
  if (!value) return read;
  if (!value->is_object()) refuse(key, "must be an object of texts");
  for (const auto& [name, text] : value->items()) {
    if (text.is_string())
      read[name] = text.get<std::string>();
    else
      refuse(std::string(key) + "." + name, "must be text");
  }
  return read;
}

std::vector<std::string> Fields::texts(const char* key) {
  std::vector<std::string> read;
  const Json* value = find(key);
  if (!value) return read;
  if (!value->is_array()) refuse(key, "must be a list of texts");
  for (const Json& text : *value) {
    if (text.is_string())
      read.push_back(text.get<std::string>());
    else
      refuse(key, "must be a list of texts");
  }
  return read;
}

Fields Fields::inside(const char* key) {
  static const Json kNothing = Json::object();
  const Json* value = find(key);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  return Fields(value ? *value : kNothing, path, *failure_);
}

std::vector<Fields> Fields::items(const char* key) {
  std::vector<Fields> read;
  const Json* value = find(key);
  if (!value) return read;
  if (!value->is_array()) {
    refuse(key, "must be a list");
    return read;
  }
  const std::string path = path_.empty() ? key : path_ + "." + key;
  for (const Json& item : *value)
    read.emplace_back(item, path + "[" + std::to_string(read.size()) + "]", *failure_);
  return read;
}

Metadata metadata_from(Fields fields) {
  Metadata read;
  read.key = {fields.text("namespace"), fields.text("name")};
  read.uid = fields.text("uid");
  read.generation = fields.integer("generation", 1);
  read.resource_version = fields.text("resourceVersion");
  read.labels = fields.texts_by_name("labels");
  read.annotations = fields.texts_by_name("annotations");
  read.finalizers = fields.texts("finalizers");
  read.created = fields.time("creationTimestamp");
  read.deleted = fields.time("deletionTimestamp");
  return read;
}

Json to_json(const Metadata& metadata) {
  Json json = {{"name", metadata.key.name}, {"generation", metadata.generation}};
  if (!metadata.key.space.empty()) json["namespace"] = metadata.key.space;
  if (!metadata.uid.empty()) json["uid"] = metadata.uid;
  if (!metadata.resource_version.empty()) json["resourceVersion"] = metadata.resource_version;
  if (!metadata.labels.empty()) json["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) json["annotations"] = metadata.annotations;
  if (!metadata.finalizers.empty()) json["finalizers"] = metadata.finalizers;
  if (metadata.created) json["creationTimestamp"] = base::to_rfc3339(*metadata.created);
  if (metadata.deleted) json["deletionTimestamp"] = base::to_rfc3339(*metadata.deleted);
  return json;
}

std::vector<Condition> conditions_from(std::vector<Fields> items) {
  std::vector<Condition> read;
  read.reserve(items.size());
  for (Fields& item : items) {
    Condition condition{item.text("type"), item.text("status"), item.text("reason"),
                        item.text("message"), item.integer("observedGeneration", 0)};
    if (const auto time = item.time("lastTransitionTime")) condition.last_transition = *time;
    read.push_back(std::move(condition));
  }
  return read;
}

Json to_json(const std::vector<Condition>& conditions) {
  Json json = Json::array();
  for (const Condition& condition : conditions) {
    json.push_back({{"type", condition.type.str()},
                    {"status", condition.status.str()},
                    {"reason", condition.reason.str()},
                    {"message", condition.message.str()},
                    {"observedGeneration", condition.observed_generation},
                    {"lastTransitionTime", base::to_rfc3339(condition.last_transition)}});
  }
  return json;
}

std::optional<base::Error> check_kind(const Json& object, std::string_view kind) {
  const std::string version = base::text_at(object, "apiVersion").value_or("");
  const std::string found = base::text_at(object, "kind").value_or("");
  if (version == kGroupVersion && found == kind) return std::nullopt;
  return base::error(ErrorCode::kInvalid, "this is \"", found, "\" of \"", version, "\", not ",
                     kind, " of ", kGroupVersion);
}

}  // namespace api
