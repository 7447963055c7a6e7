#include "cli/cluster_manifest.h"

#include <algorithm>
#include <regex>

#include "cli/explain.h"
#include "libs/base/strings.h"
#include "libs/manifests/reading.h"
#include "libs/manifests/rules.h"

namespace cli {

using base::Error;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;
using kube::Reason;

namespace {

constexpr std::string_view kOwnedByOthers = "FieldManagerConflict";

const kube::Resource* resource_of(const Json& object) {
  if (!object.is_object()) return nullptr;
  const auto version = base::text_at(object, "apiVersion");
  const auto kind = base::text_at(object, "kind");
  for (const auto* each : {&kube::kSandboxes, &kube::kSandboxProviders, &kube::kSecrets})
    if (kind == each->kind && version == api_version_of(*each)) return each;
  return nullptr;
}

std::string manager_in(const kube::Cause& cause) {
  static const std::regex kWords("conflict with \"([^\"]+)\"");
  std::smatch words;
  return std::regex_search(cause.message, words, kWords) ? words[1].str() : std::string();
}

bool is_conflict(const kube::Refusal& refusal) {
  return std::ranges::any_of(refusal.causes,
                             [](const auto& each) { return each.reason == kOwnedByOthers; });
}

// The field that a strict server does not know, by its two wordings.
std::string unknown_field(const kube::Refusal& refusal) {
  static const std::regex kWords(
      "unknown field \"([^\"]+)\"|(\\.[^ :]+): field not declared in schema");
  std::smatch words;
  if (!std::regex_search(refusal.message, words, kWords)) return {};
  return words[1].matched ? words[1].str() : words[2].str();
}

// What does not even fit the schema's types is refused as the server's own failure.
bool is_unfit(const kube::Refusal& refusal) {
  return refusal.reason == Reason::kInvalid ||
         refusal.message.find("failed to create typed patch object") != std::string::npos;
}

// The CRD's rule that this is about, for its cure; server and reader word it alike.
const manifests::Rule* rule_in(const std::string& message) {
  const auto rules = manifests::rules();
  const auto found = std::ranges::find_if(rules, [&](const manifests::Rule& rule) {
    return message.find(rule.message) != std::string::npos;
  });
  return found == rules.end() ? nullptr : &*found;
}

class Telling {
 public:
  Telling(const ClusterManifest& manifest, const ClusterDocument& document)
      : manifest_(manifest), document_(document) {}

  yaml::Problem problem(const std::string& field, std::string rule, std::string cure) const {
    const std::string pointer = pointer_of(field, document_.written.json);
    const yaml::Position at = document_.written.positions.value(pointer);
    const bool named = !field.empty() && field != "<nil>";
    return {manifest_.file,  at.line,        at.column, named ? trimmed(field) : "",
            std::move(rule), std::move(cure)};
  }

  std::vector<yaml::Problem> conflicts(const kube::Refusal& refusal) const {
    std::vector<yaml::Problem> all;
    for (const auto& cause : refusal.causes)
      if (cause.reason == kOwnedByOthers)
        all.push_back(problem(cause.field, "is set by \"" + manager_in(cause) + "\"",
                              "take it out of the manifest to leave it to them, or apply with "
                              "--force-conflicts to take it over"));
    return all;
  }

  std::vector<yaml::Problem> violations(const kube::Refusal& refusal) const {
    if (!manifest_.doubts.empty()) return manifest_.doubts;
    if (const std::string field = unknown_field(refusal); !field.empty())
      return {problem(field, "is not known to this cluster",
                      std::string("its definitions are older than this program: ") + kInstall)};
    std::vector<yaml::Problem> all;
    for (const auto& cause : refusal.causes) {
      const auto* rule = rule_in(cause.message);
      all.push_back(problem(cause.field, rule ? std::string(rule->message) : cause.message,
                            rule ? std::string(rule->cure) : ""));
    }
    if (all.empty()) all.push_back(problem("", refusal.message, ""));
    return all;
  }

 private:
  static std::string trimmed(const std::string& field) {
    return field.starts_with('.') ? field.substr(1) : field;
  }

  const ClusterManifest& manifest_;
  const ClusterDocument& document_;
};

}  // namespace

Result<ClusterManifest> read_for_cluster(const Manifest& manifest) {
  ClusterManifest read{manifest.name.empty() ? "stdin.yaml" : manifest.name};
  yaml::File source = yaml::read(manifest.text, read.file);
  if (!source.problems.empty()) return error(ErrorCode::kInvalid, to_text(source.problems));
  read.doubts = manifests::read_manifest(manifest.text, read.file, manifest.space).problems;
  for (yaml::Document& document : source.documents) {
    const auto* resource = resource_of(document.json);
    const Json* metadata =
        document.json.is_object() ? base::object_at(document.json, "metadata") : nullptr;
    const auto name = metadata ? base::text_at(*metadata, "name") : std::nullopt;
    if (!resource || !name || name->empty())
      return error(ErrorCode::kInvalid, to_text(read.doubts));
    ClusterDocument wanted{*resource, {"", *name}, document.json, std::move(document)};
    Json& own = wanted.object["metadata"];
    wanted.object.erase("status");
    manifests::drop_written_by_servers(own);
    if (resource->namespaced) {
      wanted.key.space = base::text_at(own, "namespace").value_or("");
      if (wanted.key.space.empty()) wanted.key.space = manifest.space;
      own["namespace"] = wanted.key.space;
    }
    read.documents.push_back(std::move(wanted));
  }
  if (read.documents.empty()) return error(ErrorCode::kInvalid, read.file, " declares no object");
  return read;
}

Error explain_apply(const kube::Refusal& refusal, const ClusterManifest& manifest,
                    const ClusterDocument& document, const kube::Config& config) {
  const Telling telling(manifest, document);
  if (is_conflict(refusal)) return {ErrorCode::kConflict, to_text(telling.conflicts(refusal))};
  if (is_unfit(refusal)) return {ErrorCode::kInvalid, to_text(telling.violations(refusal))};
  // Apply makes what is not there: what was not found is where to make it.
  if (refusal.reason == Reason::kNotFound)
    return error(ErrorCode::kNotFound, "there is no namespace \"", document.key.space,
                 "\"; create it (kubectl create namespace ", document.key.space,
                 "), or name another with -n");
  return explain(refusal, config);
}

bool conflicts_only_with(const std::string& manager, const kube::Refusal& refusal) {
  return is_conflict(refusal) && std::ranges::all_of(refusal.causes, [&](const auto& each) {
           return each.reason == kOwnedByOthers && manager_in(each) == manager;
         });
}

std::string pointer_of(const std::string& field, const Json& object) {
  std::string pointer;
  const Json* at = &object;
  std::string_view rest = field;
  const auto step_to_member = [&](std::string_view name) {
    at = &at->at(std::string(name));
    pointer = yaml::pointer_to(pointer, std::string(name));
  };
  while (!rest.empty()) {
    if (rest[0] == '.') {
      rest.remove_prefix(1);
      continue;
    }
    if (rest[0] == '[') {
      const std::size_t end = rest.find(']');
      if (end == rest.npos) return pointer;
      const std::string_view inside = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
      if (at->is_object() && at->contains(std::string(inside))) {
        step_to_member(inside);
        continue;
      }
      if (!at->is_array()) return pointer;
      // A number, or what a member of the item says: [name="A"].
      static const std::regex kSays("([^=]+)=\"([^\"]*)\"");
      std::cmatch says;
      std::size_t index = at->size();
      if (std::regex_match(inside.begin(), inside.end(), says, kSays)) {
        const std::string member = says[1], value = says[2];
        index = static_cast<std::size_t>(
            std::ranges::find_if(*at,
                                 [&](const Json& item) {
                                   return item.is_object() &&
                                          base::text_at(item, member.c_str()) == value;
                                 }) -
            at->begin());
      } else if (const auto number = base::parse_integer(inside); number && *number >= 0) {
        index = static_cast<std::size_t>(*number);
      }
      if (index >= at->size()) return pointer;
      at = &at->at(index);
      pointer = yaml::pointer_to(pointer, index);
      continue;
    }
    // The longest member that the rest begins with, for keys may have dots.
    std::string_view longest;
    if (at->is_object())
      for (const auto& [key, value] : at->items())
        if (key.size() > longest.size() && rest.starts_with(key) &&
            (rest.size() == key.size() || rest[key.size()] == '.' || rest[key.size()] == '['))
          longest = rest.substr(0, key.size());
    if (longest.empty()) return pointer;
    rest.remove_prefix(longest.size());
    step_to_member(longest);
  }
  return pointer;
}

}  // namespace cli
