#include "controller/cluster/demands.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>

#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/kube/explain.h"
#include "libs/manifests/schema.h"

namespace controller {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;
using kube::Right;

namespace {

constexpr std::size_t kFieldsShown = 5;
constexpr std::size_t kAskersMax = 8;  // An answer takes milliseconds, and there are dozens.

Right on(const kube::Resource& resource, const char* verb, std::string space = {},
         std::string subresource = {}) {
  return {verb, resource.group, resource.plural, std::move(subresource), std::move(space)};
}

// A server that lets nobody ask about himself has not said no.
bool cannot_be_asked(const kube::Refusal& refusal) {
  return refusal.reason == kube::Reason::kForbidden || refusal.status == 404;
}

base::Error not_allowed(const std::vector<Right>& rights) {
  std::vector<std::string> words;
  std::ranges::transform(rights, std::back_inserter(words),
                         [](const Right& right) { return kube::to_text(right); });
  return error(ErrorCode::kDenied, "the controller may not ", base::join(words, ", "),
               ", and does not begin without: install the chart with rbac.create=true, or bind its "
               "account to a role that has it, and see with '",
               kube::can_i(rights.front()), "'");
}

// Whether we have each of them, asked side by side.
std::vector<kube::Answer<bool>> ask_for(kube::Client& client, const std::vector<Right>& rights) {
  std::vector<kube::Answer<bool>> told(rights.size(), false);
  std::atomic<std::size_t> next = 0;
  const auto ask = [&] {
    for (std::size_t i = next++; i < rights.size(); i = next++)
      told[i] = kube::may(client, rights[i], {});
  };
  {
    std::vector<std::jthread> askers;
    while (askers.size() < std::min(rights.size(), kAskersMax)) askers.emplace_back(ask);
  }
  return told;
}

std::string joined(const std::string& at, const std::string& name) {
  return at.empty() ? name : at + "." + name;
}

// What every object has is the server's own matter.
bool is_ours(const std::string& at, const std::string& name) {
  return !at.empty() || (name != "apiVersion" && name != "kind" && name != "metadata");
}

void gather(const Json& ours, const Json& served, const std::string& at,
            std::vector<std::string>& missing) {
  if (base::bool_at(served, "x-kubernetes-preserve-unknown-fields").value_or(false)) return;
  const Json* item = base::object_at(ours, "items");
  const Json* their_item = base::object_at(served, "items");
  if (item && their_item) gather(*item, *their_item, at + "[]", missing);
  const Json* properties = base::object_at(ours, "properties");
  const Json* theirs = base::object_at(served, "properties");
  if (!properties) return;
  for (const auto& [name, property] : properties->items()) {
    if (!is_ours(at, name)) continue;
    const Json* there = theirs ? base::object_at(*theirs, name.c_str()) : nullptr;
    if (there)
      gather(property, *there, joined(at, name), missing);
    else
      missing.push_back(joined(at, name));
  }
}

// The schema of a kind within an OpenAPI v3 document of its group and version.
const Json* schema_in(const Json& document, const kube::Resource& resource) {
  const Json* components = base::object_at(document, "components");
  const Json* schemas = components ? base::object_at(*components, "schemas") : nullptr;
  if (!schemas) return nullptr;
  for (const Json& schema : *schemas) {
    const Json* kinds = base::array_at(schema, "x-kubernetes-group-version-kind");
    for (std::size_t i = 0; kinds && i < kinds->size(); ++i)
      if (base::text_at((*kinds)[i], "group") == resource.group &&
          base::text_at((*kinds)[i], "kind") == resource.kind)
        return &schema;
  }
  return nullptr;
}

// What the definitions lack, in words; empty when nothing.
std::string lacks_of(const Json& document) {
  std::vector<std::string> lacks;
  for (const auto& [resource, kind] :
       {std::pair(kube::kSandboxes, manifests::Kind::kSandbox),
        std::pair(kube::kSandboxProviders, manifests::Kind::kProvider)}) {
    const Json* served = schema_in(document, resource);
    if (!served) continue;  // Listing it will tell.
    std::vector<std::string> fields = missing_fields(manifests::schema_of(kind).json(), *served);
    if (fields.empty()) continue;
    const std::size_t more = fields.size() - std::min(fields.size(), kFieldsShown);
    fields.resize(fields.size() - more);
    lacks.push_back("that of " + resource.kind + " has no " + base::join(fields, ", ") +
                    (more > 0 ? " and " + std::to_string(more) + " more" : std::string()));
  }
  return base::join(lacks, "; ");
}

}  // namespace

std::vector<Right> rights_needed(const Whereabouts& at) {
  using kube::kSandboxes, kube::kSandboxProviders, kube::kLeases, kube::kSecrets, kube::kConfigMaps;
  std::vector<Right> rights;
  for (const char* verb : {"get", "list", "watch", "patch", "delete"})
    rights.push_back(on(kSandboxes, verb, at.space));
  rights.push_back(on(kSandboxes, "patch", at.space, "status"));
  for (const char* verb : {"get", "list", "watch", "patch"})
    rights.push_back(on(kSandboxProviders, verb));
  rights.push_back(on(kSandboxProviders, "patch", {}, "status"));
  for (const char* verb : {"get", "list", "create", "update"})
    rights.push_back(on(kLeases, verb, at.own_space));
  for (const auto& resource : {kSecrets, kConfigMaps})
    for (const char* verb : {"get", "create", "patch"})
      rights.push_back(on(resource, verb, at.own_space));
  if (!at.needs_fleet_id) return rights;
  Right system = on(kube::kNamespaces, "get");
  system.name = "kube-system";
  rights.push_back(std::move(system));
  return rights;
}

std::vector<Wish> rights_wished(const Whereabouts& at) {
  std::vector<Wish> wishes{{"no events will be written", on(kube::kEvents, "create", at.space)}};
  if (!at.attaches) return wishes;
  wishes.push_back({"nobody will be let in", {"create", "authentication.k8s.io", "tokenreviews"}});
  wishes.push_back(
      {"nobody will be let in", {"create", "authorization.k8s.io", "subjectaccessreviews"}});
  return wishes;
}

Result<Done> check_rights(kube::Client& client, const Whereabouts& at) {
  const std::vector<Wish> wishes = rights_wished(at);
  std::vector<Right> rights = rights_needed(at);
  const std::size_t needed = rights.size();
  for (const Wish& wish : wishes) rights.push_back(wish.right);
  const auto told = ask_for(client, rights);
  std::vector<Right> lacking;
  for (std::size_t i = 0; i < needed; ++i) {
    if (!told[i] && cannot_be_asked(told[i].error())) {
      base::log::warn("which rights the controller has cannot be told",
                      {{"error", told[i].error()}});
      return Done{};
    }
    if (!told[i]) return kube::explain(told[i].error(), client.config());
    if (!*told[i]) lacking.push_back(rights[i]);
  }
  if (!lacking.empty()) return not_allowed(lacking);
  for (std::size_t i = 0; i < wishes.size(); ++i)
    if (const auto& answer = told[needed + i]; answer && !*answer)
      base::log::warn(wishes[i].without, {{"without", kube::to_text(wishes[i].right)},
                                          {"see_with", kube::can_i(wishes[i].right)}});
  return Done{};
}

std::vector<std::string> missing_fields(const Json& ours, const Json& served) {
  std::vector<std::string> missing;
  gather(ours, served, "", missing);
  return missing;
}

Result<Done> check_definitions(kube::Client& client, const std::function<void()>& rest) {
  const std::string path = "/openapi/v3/apis/" + kube::api_version_of(kube::kSandboxes);
  for (int look = 1;; ++look) {
    const auto document = client.fetch(path);
    if (!document && cannot_be_asked(document.error())) {
      base::log::debug("what the definitions have cannot be told", {{"error", document.error()}});
      return Done{};
    }
    if (!document) return kube::explain(document.error(), client.config());
    const std::string lacks = lacks_of(*document);
    if (lacks.empty()) return Done{};
    if (look == kDefinitionLooksMax)
      return error(ErrorCode::kUnavailable, "the cluster's definitions of ", kube::kSandboxes.group,
                   " are older than this program: ", lacks,
                   "; upgrade the chart with crds.install=true, or them alone (kubectl apply -f "
                   "crds/)");
    rest();
  }
}

}  // namespace controller
