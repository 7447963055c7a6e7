#include "libs/manifests/record.h"

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace manifests {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr int kFormat = 1;

std::map<std::string, std::string> texts_at(const Json& json, const char* key) {
  std::map<std::string, std::string> texts;
  if (const Json* found = base::object_at(json, key))
    for (const auto& [name, text] : found->items())
      if (text.is_string()) texts[name] = text.get<std::string>();
  return texts;
}

}  // namespace

std::string to_text(const Id& id) {
  return std::string(to_word(id.kind)) + " " + api::to_text(id.key);
}

Json to_json(const Id& id) {
  return {{"kind", to_word(id.kind)}, {"namespace", id.key.space}, {"name", id.key.name}};
}

Id id_from_json(const Json& json) {
  const bool provider = base::text_at(json, "kind") == to_word(Kind::kProvider);
  return {
      provider ? Kind::kProvider : Kind::kSandbox,
      {base::text_at(json, "namespace").value_or(""), base::text_at(json, "name").value_or("")}};
}

Json to_json(const Record& record) {
  Json json = to_json(record.id);
  json["format"] = kFormat;
  json["source"] = {{"file", record.file},
                    {"document", record.document},
                    {"digest", record.digest},
                    {"labels", record.labels},
                    {"annotations", record.annotations}};
  json["passedOver"] = record.passed_over;
  if (record.sandbox) json["object"] = api::to_json(*record.sandbox);
  if (record.provider) json["object"] = api::to_json(*record.provider);
  return json;
}

Result<Record> record_from_json(const Json& json) {
  if (base::integer_at(json, "format") != kFormat)
    return base::error(ErrorCode::kInvalid, "is not of format ", std::to_string(kFormat));
  Record record{id_from_json(json)};
  record.passed_over = base::bool_at(json, "passedOver").value_or(false);
  if (const Json* source = base::object_at(json, "source")) {
    record.file = base::text_at(*source, "file").value_or("");
    record.document = static_cast<int>(base::integer_at(*source, "document").value_or(0));
    record.digest = base::text_at(*source, "digest").value_or("");
    record.labels = texts_at(*source, "labels");
    record.annotations = texts_at(*source, "annotations");
  }
  const Json* object = base::object_at(json, "object");
  if (object && record.id.kind == Kind::kProvider) {
    TRY(auto read, api::provider_from_json(*object));
    record.provider = std::make_shared<const api::SandboxProvider>(std::move(read));
  } else if (object) {
    TRY(auto read, api::sandbox_from_json(*object));
    record.sandbox = std::make_shared<const api::Sandbox>(std::move(read));
  }
  return record;
}

fs::path Layout::records(Kind kind) const {
  return state / (kind == Kind::kProvider ? "sandboxproviders" : "sandboxes");
}

fs::path Layout::record(const Id& id) const {
  const fs::path folder = records(id.kind);
  return (id.key.space.empty() ? folder : folder / id.key.space) / (id.key.name + ".json");
}

Json to_json(const Facts& facts) {
  return {{"format", kFormat},
          {"fleetID", facts.fleet_id},
          {"manifests", facts.manifests},
          {"device", facts.device},
          {"inode", facts.inode}};
}

Result<Facts> facts_from_json(const Json& json) {
  if (base::integer_at(json, "format") != kFormat)
    return base::error(ErrorCode::kInvalid, "is not of format ", std::to_string(kFormat));
  return Facts{base::text_at(json, "fleetID").value_or(""),
               base::text_at(json, "manifests").value_or(""),
               static_cast<std::uint64_t>(base::integer_at(json, "device").value_or(0)),
               static_cast<std::uint64_t>(base::integer_at(json, "inode").value_or(0))};
}

Json to_json(const Brake& brake) {
  return {{"id", brake.id}, {"reason", brake.reason}, {"since", base::to_rfc3339(brake.since)}};
}

Result<Brake> brake_from_json(const Json& json) {
  const auto id = base::text_at(json, "id");
  if (!id) return base::error(ErrorCode::kInvalid, "has no id");
  const auto since = base::parse_rfc3339(base::text_at(json, "since").value_or(""));
  return Brake{*id, base::text_at(json, "reason").value_or(""), since ? *since : base::WallTime{}};
}

Result<fs::path> json_file_of(const fs::path& folder, const std::string& name,
                              std::string_view what) {
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
    return base::error(ErrorCode::kInvalid, "\"", name, "\" is no ", what);
  return folder / (name + ".json");
}

Result<std::optional<Json>> read_json_file(const fs::path& path, std::string_view cure) {
  const auto content = base::read_file(path);
  if (!content && content.error().code == ErrorCode::kNotFound) return std::optional<Json>();
  if (!content) return content.error();
  auto json = base::parse_json(*content);
  if (!json)
    return base::error(ErrorCode::kInvalid, path.string(), " is ", json.error().message, "; ",
                       cure);
  return std::optional<Json>(*std::move(json));
}

// A record is what knows the UID, and so the E2B sandbox, of an object.
std::string_view cure_of(Kind kind) {
  return kind == Kind::kProvider
             ? "restore it from a copy, or remove it and it is made anew from its manifest"
             : "restore it from a copy. Removed, it is forgotten: its manifest makes another "
               "Sandbox, with a new E2B sandbox, and the old one is ended as an orphan, with "
               "everything in it";
}

bool is_record(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.starts_with('.') && path.extension() == ".json";
}

Result<std::optional<Record>> read_record(const fs::path& path, Kind kind) {
  TRY(const auto json, read_json_file(path, cure_of(kind)));
  if (!json) return std::optional<Record>();
  auto record = record_from_json(*json);
  if (!record)
    return base::error(ErrorCode::kInvalid, path.string(), " ", record.error().message, "; ",
                       cure_of(kind));
  return std::optional<Record>(*std::move(record));
}

RecordFiles read_record_files(const Layout& layout, Kind kind) {
  RecordFiles found;
  std::error_code error;
  const fs::path folder = layout.records(kind);
  if (!fs::is_directory(folder, error)) return found;
  for (fs::recursive_directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    if (error) break;
    const fs::path& path = entry->path();
    if (!is_record(path)) continue;
    auto record = read_record(path, kind);
    if (!record) found.unreadable.emplace(path, record.error());
    if (record && *record) found.records.push_back(**std::move(record));
  }
  if (error)
    found.unreadable.emplace(folder, base::error(ErrorCode::kUnavailable, "cannot list ",
                                                 folder.string(), ": ", error.message()));
  return found;
}

Result<std::vector<Record>> read_records(const Layout& layout, Kind kind) {
  auto found = read_record_files(layout, kind);
  if (!found.unreadable.empty()) return found.unreadable.begin()->second;
  return std::move(found.records);
}

}  // namespace manifests
