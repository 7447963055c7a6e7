#include "libs/manifests/reading.h"

#include <cassert>
#include <regex>
#include <set>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/manifests/rules.h"
#include "libs/manifests/schema.h"
#include "libs/yaml/reader.h"

namespace manifests {

using base::Json;

namespace {

constexpr const char* kWrittenByServers[] = {"uid",
                                             "resourceVersion",
                                             "generation",
                                             "managedFields",
                                             "creationTimestamp",
                                             "deletionTimestamp",
                                             "deletionGracePeriodSeconds",
                                             "selfLink"};
constexpr const char* kAnnotations = "annotations";
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

const Schema& metadata_schema(bool namespaced) {
  const auto make = [](bool with_namespace) {
    constexpr const char* kLabel = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    constexpr const char* kSubdomain =
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    Json properties = {{"name",
                        {{"type", "string"},
                         {"description", "the name of the object"},
                         {"minLength", 1},
                         {"maxLength", 253},
                         {"pattern", kSubdomain}}},
                       {"labels",
                        {{"type", "object"},
                         {"maxProperties", 64},
                         {"additionalProperties",
                          {{"type", "string"},
                           {"maxLength", 63},
                           {"pattern", "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"}}}}},
                       {"annotations",
                        {{"type", "object"},
                         {"maxProperties", 64},
                         {"additionalProperties", {{"type", "string"}, {"maxLength", 65536}}}}}};
    if (with_namespace)
      properties["namespace"] = {
          {"type", "string"}, {"minLength", 1}, {"maxLength", 63}, {"pattern", kLabel}};
    return Json{{"type", "object"}, {"required", {"name"}}, {"properties", properties}};
  };
  static const Schema kNamespaced(make(true));
  static const Schema kCluster(make(false));
  return namespaced ? kNamespaced : kCluster;
}

const Schema& secret_schema() {
  static const Schema kSchema(Json{{"type", "object"},
                                   {"properties",
                                    {{"apiVersion", {{"type", "string"}}},
                                     {"kind", {{"type", "string"}}},
                                     {"metadata", {{"type", "object"}}},
                                     {"type", {{"type", "string"}}},
                                     {"immutable", {{"type", "boolean"}}},
                                     {"data", {{"type", "object"}}},
                                     {"stringData", {{"type", "object"}}}}}});
  return kSchema;
}

// Everything that is known of one document while it is read.
struct Document {
  const yaml::Document& written;
  const std::string& file;
  Json json;
  std::vector<yaml::Problem>& problems;

  void refuse(const Violation& violation) {
    const yaml::Position at = violation.at_key ? written.positions.key(violation.pointer)
                                               : written.positions.value(violation.pointer);
    problems.push_back({file, at.line, at.column, yaml::field_of(violation.pointer), violation.rule,
                        violation.cure});
  }
  void refuse(const std::vector<Violation>& violations, const std::string& under = "") {
    for (Violation violation : violations) {
      violation.pointer = under + violation.pointer;
      refuse(violation);
    }
  }
};

std::optional<Kind> kind_of(Document& document) {
  if (!document.json.is_object()) {
    document.refuse({"", "an object must be a mapping with apiVersion, kind, metadata and spec",
                     "write those four fields"});
    return std::nullopt;
  }
  const auto version = base::text_at(document.json, "apiVersion");
  const auto kind = base::text_at(document.json, "kind");
  if (!version) document.refuse({"/apiVersion", "is missing", "add it: sandfleet.dev/v1alpha1"});
  if (!kind) document.refuse({"/kind", "is missing", "add it: Sandbox, SandboxProvider or Secret"});
  if (!version || !kind) return std::nullopt;
  for (const Kind known : {Kind::kSandbox, Kind::kProvider, Kind::kSecret}) {
    if (*kind != to_word(known)) continue;
    const std::string_view right = known == Kind::kSecret ? "v1" : api::kGroupVersion;
    if (*version == right) return known;
    document.refuse(
        {"/apiVersion",
         "must be " + std::string(right) + " for a " + *kind + ", is \"" + *version + "\"",
         "write " + std::string(right)});
    return std::nullopt;
  }
  const std::string meant = nearest(*kind, {"Sandbox", "SandboxProvider", "Secret"});
  document.refuse({"/kind", "\"" + *kind + "\" is no kind that is read here",
                   meant.empty() ? "keep only Sandbox, SandboxProvider and Secret in this folder"
                                 : "did you mean " + meant + "?"});
  return std::nullopt;
}

// Whether `key` may name a label or an annotation: NAME or PREFIX/NAME.
bool qualified(std::string_view key) {
  constexpr std::size_t kPrefixMax = 253, kNameMax = 63;
  static const std::regex kPrefix(
      "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  static const std::regex kName("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]");
  const std::size_t slash = key.find('/');
  const std::string prefix(slash == key.npos ? "a" : key.substr(0, slash));
  const std::string name(slash == key.npos ? key : key.substr(slash + 1));
  return prefix.size() <= kPrefixMax && name.size() <= kNameMax &&
         std::regex_match(prefix, kPrefix) && std::regex_match(name, kName);
}

void check_keys(const Json& metadata, const std::string& field, Document& document) {
  const Json* entries = base::object_at(metadata, field.c_str());
  if (!entries) return;
  const bool any_case = field == kAnnotations;
  for (const auto& [key, value] : entries->items())
    if (!qualified(any_case ? base::lower(key) : key))
      document.refuse(
          {yaml::pointer_to("/metadata/" + field, key), "the key must be NAME or PREFIX/NAME",
           "use letters, digits and - _ . in NAME (at most 63), a DNS name as PREFIX", true});
}

void check_metadata(Kind kind, Document& document) {
  Json& metadata = document.json["metadata"];
  if (metadata.is_null()) metadata = Json::object();
  if (!metadata.is_object()) {
    document.refuse({"/metadata", "must be a mapping", "write name below it, indented"});
    return;
  }
  drop_written_by_servers(metadata);
  if (base::text_at(metadata, "namespace") == "") metadata.erase("namespace");
  const bool cluster_scoped = kind == Kind::kProvider;
  if (cluster_scoped && metadata.contains("namespace")) {
    document.refuse(
        {"/metadata/namespace", "a SandboxProvider belongs to no namespace", "remove it", true});
    return;
  }
  const Schema& schema = metadata_schema(!cluster_scoped);
  schema.prepare(metadata);
  document.refuse(schema.check(metadata), "/metadata");
  for (const char* field : {"labels", kAnnotations}) check_keys(metadata, field, document);
  const Json* annotations = base::object_at(metadata, kAnnotations);
  if (annotations && annotations->contains(std::string(api::kAttemptAnnotation)))
    document.refuse(
        {yaml::pointer_to("/metadata/annotations", std::string(api::kAttemptAnnotation)),
         "only the controller writes this annotation", "remove it", true});
}

// Values of Secrets are in no message.
std::map<std::string, std::string> secret_values(Document& document) {
  std::map<std::string, std::string> values;
  const auto read = [&](const char* field, bool encoded) {
    const Json* entries = base::object_at(document.json, field);
    if (!entries) return;
    for (const auto& [key, value] : entries->items()) {
      const std::string pointer = yaml::pointer_to(std::string("/") + field, key);
      if (!value.is_string()) {
        document.refuse({pointer, "must be text", "put it in quotes"});
        continue;
      }
      if (!encoded) {
        values[key] = value.get<std::string>();
        continue;
      }
      const auto bytes = base::from_base64(base::trim(value.get<std::string>()));
      if (bytes)
        values[key] = *bytes;
      else
        document.refuse({pointer, "must be base64", "encode it, or move it to stringData"});
    }
  };
  read("data", true);
  read("stringData", false);  // Wins over data, as in Kubernetes.
  return values;
}

void check_secret(Document& document, Declared& declared) {
  // A copy without the values, so that no message can show one.
  Json shape = document.json;
  secret_schema().prepare(shape);
  for (const char* field : {"data", "stringData"})
    if (shape.contains(field) && shape[field].is_object()) shape[field] = Json::object();
  document.refuse(secret_schema().check(shape));
  declared.secret = secret_values(document);
}

void check_resource(Kind kind, Document& document, Declared& declared) {
  document.json.erase(
      "status");  // Status is the controller's; what is written here is passed over.
  const Schema& schema = schema_of(kind);
  Json object = document.json;
  schema.prepare(object);
  auto violations = schema.check(object);
  if (violations.empty()) violations = check_rules(kind, object, nullptr);
  document.refuse(violations);
  declared.object = std::move(object);
}

std::optional<Declared> read_document(Document& document, const std::string& space) {
  const std::size_t problems_before = document.problems.size();
  const auto kind = kind_of(document);
  if (!kind) return std::nullopt;
  Declared declared{*kind};
  declared.digest = base::to_hex(base::sha256(base::to_text(document.json)));
  declared.file = document.file;
  declared.document = document.written.number;
  declared.line = document.written.positions.value("").line;
  check_metadata(*kind, document);
  if (*kind == Kind::kSecret)
    check_secret(document, declared);
  else
    check_resource(*kind, document, declared);
  if (document.problems.size() != problems_before) return std::nullopt;
  const Json& metadata = document.json["metadata"];
  declared.key.name = metadata["name"].get<std::string>();
  if (*kind != Kind::kProvider) {
    declared.key.space = base::text_at(metadata, "namespace").value_or(space);
    if (*kind == Kind::kSandbox) declared.object["metadata"]["namespace"] = declared.key.space;
  }
  return declared;
}

void refuse_twins(Reading& reading, const std::string& file) {
  std::map<std::pair<Kind, api::Key>, int> first_line;
  for (const Declared& object : reading.objects) {
    const auto [first, fresh] = first_line.try_emplace({object.kind, object.key}, object.line);
    if (fresh) continue;
    reading.problems.push_back({file, object.line, 1, "metadata.name",
                                std::string(to_word(object.kind)) + " " + to_text(object.key) +
                                    " stands in this file twice, first at line " +
                                    std::to_string(first->second),
                                "remove one, or rename it"});
  }
}

}  // namespace

std::string_view to_word(Kind kind) {
  switch (kind) {
    case Kind::kSandbox:
      return "Sandbox";
    case Kind::kProvider:
      return "SandboxProvider";
    case Kind::kSecret:
      return "Secret";
  }
  assert(false && "an enumerator without a word");
  return {};
}

void drop_written_by_servers(Json& metadata) {
  for (const char* name : kWrittenByServers) metadata.erase(name);
  const auto annotations = metadata.find(kAnnotations);
  if (annotations != metadata.end() && annotations->is_object()) annotations->erase(kLastApplied);
}

Reading read_manifest(std::string_view text, const std::string& file, const std::string& space) {
  Reading reading;
  yaml::File source = yaml::read(text, file);
  reading.problems = std::move(source.problems);
  for (const yaml::Document& each : source.documents) {
    Document document{each, file, each.json, reading.problems};
    if (auto declared = read_document(document, space))
      reading.objects.push_back(*std::move(declared));
  }
  refuse_twins(reading, file);
  if (!reading.problems.empty()) reading.objects.clear();
  return reading;
}

std::vector<yaml::Problem> check_edit(const Declared& after, const Json& before,
                                      std::string_view text) {
  std::vector<yaml::Problem> problems;
  const auto violations = check_rules(after.kind, after.object, &before);
  if (violations.empty()) return problems;
  const yaml::File source = yaml::read(text, after.file);
  for (const yaml::Document& each : source.documents) {
    if (each.number != after.document) continue;
    Document document{each, after.file, each.json, problems};
    document.refuse(violations);
  }
  return problems;
}

}  // namespace manifests
