#include "cli/resources/cluster_manifest.h"

#include <algorithm>
#include <regex>

#include "libs/base/strings.h"
#include "libs/kube/explain.h"
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

// Goes through an object by the words of a field path, as far as there is something.
class FieldWalk {
 public:
  FieldWalk(const Json& object, std::string_view field) : at_(&object), rest_(field) {
    while (!rest_.empty() && step()) {
    }
  }
  const std::string& pointer() const { return pointer_; }

 private:
  bool step() {
    if (rest_[0] == '.') {
      rest_.remove_prefix(1);
      return true;
    }
    return rest_[0] == '[' ? step_into_brackets() : step_to_member();
  }

  // The longest member that the rest begins with, for keys may have dots.
  bool step_to_member() {
    std::string_view longest;
    if (at_->is_object())
      for (const auto& [key, value] : at_->items())
        if (key.size() > longest.size() && rest_.starts_with(key) && ends_word(key.size()))
          longest = rest_.substr(0, key.size());
    if (longest.empty()) return false;
    rest_.remove_prefix(longest.size());
    return enter(std::string(longest));
  }
  bool ends_word(std::size_t size) const {
    return rest_.size() == size || rest_[size] == '.' || rest_[size] == '[';
  }

  // [key] of a mapping; [0] or [name="A"] of a list.
  bool step_into_brackets() {
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos) return false;
    const std::string inside(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    if (at_->is_object()) return at_->contains(inside) && enter(inside);
    const std::size_t index = at_->is_array() ? index_of(inside) : 0;
    if (index >= at_->size() || !at_->is_array()) return false;
    at_ = &at_->at(index);
    pointer_ = yaml::pointer_to(pointer_, index);
    return true;
  }
  std::size_t index_of(const std::string& inside) const {
    static const std::regex kSays("([^=]+)=\"([^\"]*)\"");
    std::smatch says;
    if (!std::regex_match(inside, says, kSays)) {
      const auto number = base::parse_integer(inside);
      return number && *number >= 0 ? static_cast<std::size_t>(*number) : at_->size();
    }
    const std::string member = says[1], value = says[2];
    const auto found = std::ranges::find_if(*at_, [&](const Json& item) {
      return item.is_object() && base::text_at(item, member.c_str()) == value;
    });
    return static_cast<std::size_t>(found - at_->begin());
  }

  bool enter(const std::string& member) {
    at_ = &at_->at(member);
    pointer_ = yaml::pointer_to(pointer_, member);
    return true;
  }

  const Json* at_;
  std::string_view rest_;
  std::string pointer_;
};

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
      return {
          problem(field, "is not known to this cluster",
                  std::string("its definitions are older than this program: ") + kube::kInstall)};
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
  return kube::explain(refusal, config);
}

bool conflicts_only_with(const std::string& manager, const kube::Refusal& refusal) {
  return is_conflict(refusal) && std::ranges::all_of(refusal.causes, [&](const auto& each) {
           return each.reason == kOwnedByOthers && manager_in(each) == manager;
         });
}

std::string pointer_of(const std::string& field, const Json& object) {
  return FieldWalk(object, field).pointer();
}

}  // namespace cli
