#include "cli/testing/fake_cluster.h"

#include <algorithm>

#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "libs/manifests/rules.h"
#include "libs/yaml/reader.h"

namespace cli {

using base::Json;

namespace {

Json parsed(const net::Request& request) {
  auto body = base::parse_json(request.body);
  return body ? *std::move(body) : Json::object();
}

std::map<std::string, std::string> query_of(const std::string& url) {
  std::map<std::string, std::string> query;
  const std::size_t mark = url.find('?');
  if (mark == url.npos) return query;
  for (const std::string& pair : base::split(url.substr(mark + 1), '&')) {
    const std::size_t equals = pair.find('=');
    query[pair.substr(0, equals)] = base::percent_decode(pair.substr(equals + 1)).value_or("");
  }
  return query;
}

// "regarding.name=a,regarding.kind=Sandbox", of members that are there.
bool fits(const Json& object, const std::string& selector) {
  if (selector.empty()) return true;
  const auto terms = base::split(selector, ',');
  return std::ranges::all_of(terms, [&](const std::string& term) {
    const std::size_t equals = term.find('=');
    std::string pointer = "/" + term.substr(0, equals);
    std::ranges::replace(pointer, '.', '/');
    return object.value(Json::json_pointer(pointer), "") == term.substr(equals + 1);
  });
}

Json violations_of(const kube::Resource& resource, const Json& object, const Json* before) {
  const auto kind =
      resource == kube::kSandboxes ? manifests::Kind::kSandbox : manifests::Kind::kProvider;
  Json causes = Json::array();
  auto found = manifests::schema_of(kind).check(object);
  if (found.empty()) found = manifests::check_rules(kind, object, before);
  for (const auto& each : found)
    causes.push_back({{"reason", "FieldValueInvalid"},
                      {"field", yaml::field_of(each.pointer)},
                      {"message", "Invalid value: \"object\": " + each.rule}});
  return causes;
}

}  // namespace

net::Answer status_answer(int number, const std::string& reason, const std::string& message,
                          Json causes) {
  return net::answer(number, base::to_text(Json{{"kind", "Status"},
                                                {"code", number},
                                                {"reason", reason},
                                                {"message", message},
                                                {"details", {{"causes", std::move(causes)}}}}));
}

FakeCluster::FakeCluster()
    : server_([this](const net::Request& request) { return answer(request); }) {}

void FakeCluster::put(const kube::Resource& resource, Json object) {
  const api::Key key = kube::identity_of(object).key;
  keep({resource, key}, std::move(object), {});
}

Json FakeCluster::find(const kube::Resource& resource, const api::Key& key) const {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(path_of(resource, key));
  return found == objects_.end() ? Json() : found->second;
}

void FakeCluster::write(const kube::Resource& resource, const Json& object) {
  std::lock_guard lock(mutex_);
  Json& kept = objects_[path_of(resource, kube::identity_of(object).key)];
  kept = object;
  kept["metadata"]["resourceVersion"] = std::to_string(++version_);
}

void FakeCluster::drop(const kube::Resource& resource, const api::Key& key) {
  std::lock_guard lock(mutex_);
  objects_.erase(path_of(resource, key));
}

net::Answer FakeCluster::answer(const net::Request& request) {
  std::lock_guard lock(mutex_);
  for (const auto& [part, refusal] : refusals_)
    if ((request.method + " " + request.url).find(part) != std::string::npos) return refusal;
  const std::string path = request.url.substr(0, request.url.find('?'));
  const auto query = query_of(request.url);
  constexpr std::string_view kHost = "https://api.test";
  auto words = base::split(path.substr(kHost.size()), '/');
  if (path.ends_with("/api/v1/namespaces/" + words.back()))
    return spaces_.contains(words.back())
               ? net::answer(200, R"({"kind":"Namespace"})")
               : status_answer(404, "NotFound", "namespaces \"" + words.back() + "\" not found");
  for (const auto& resource :
       {kube::kSandboxes, kube::kSandboxProviders, kube::kEvents, kube::kSecrets}) {
    const auto plural = std::ranges::find(words, resource.plural);
    if (plural == words.end()) continue;
    Target target{resource};
    const auto space = std::ranges::find(words, "namespaces");
    if (space != words.end()) target.key.space = *std::next(space);
    if (std::next(plural) != words.end()) target.key.name = *std::next(plural);
    if (target.key.name.empty()) return list(target, query);
    if (request.method == "PATCH") return change(target, request, query);
    if (request.method == "DELETE") return remove(target, request);
    const Json found = find(resource, target.key);
    return found.is_null() ? status_answer(404, "NotFound", target.key.name + " not found")
                           : net::answer(200, base::to_text(found));
  }
  return net::answer(404, "404 page not found");
}

net::Answer FakeCluster::list(const Target& target, const Query& query) const {
  Json items = Json::array();
  const auto selector = query.find("fieldSelector");
  for (const auto& [path, object] : objects_) {
    const auto key = kube::identity_of(object).key;
    if (path != path_of(target.resource, key)) continue;
    if (!target.key.space.empty() && target.key.space != key.space) continue;
    if (fits(object, selector == query.end() ? "" : selector->second)) items.push_back(object);
  }
  return net::answer(
      200, base::to_text(Json{{"metadata", {{"resourceVersion", std::to_string(version_)}}},
                              {"items", std::move(items)}}));
}

net::Answer FakeCluster::change(const Target& target, const net::Request& request,
                                const Query& query) {
  Json object = find(target.resource, target.key);
  Json body = parsed(request);
  const bool applies = request.headers.find("Content-Type") == "application/apply-patch+yaml";
  if (object.is_null() && !applies)
    return status_answer(404, "NotFound", target.key.name + " not found");
  const auto uid = base::text_at(body["metadata"], "uid");
  if (uid && *uid != kube::identity_of(object).uid)
    return status_answer(409, "Conflict", "the UID in the precondition does not match");
  if (target.resource.namespaced && !spaces_.contains(target.key.space))
    return status_answer(404, "NotFound", "namespaces \"" + target.key.space + "\" not found");
  if (object.is_null()) object = Json::object();
  object.merge_patch(body);
  return keep(target, std::move(object), query);
}

net::Answer FakeCluster::keep(const Target& target, Json object, const Query& query) {
  std::lock_guard lock(mutex_);
  const Json before = find(target.resource, target.key);
  object.emplace("apiVersion", api_version_of(target.resource));
  object.emplace("kind", target.resource.kind);
  if (target.resource == kube::kSandboxes || target.resource == kube::kSandboxProviders) {
    const auto kind = target.resource == kube::kSandboxes ? manifests::Kind::kSandbox
                                                          : manifests::Kind::kProvider;
    Json judged = object;
    judged["metadata"] = {{"name", target.key.name}};
    manifests::schema_of(kind).prepare(judged);
    const Json causes =
        violations_of(target.resource, judged, before.is_null() ? nullptr : &before);
    if (!causes.empty())
      return status_answer(422, "Invalid", target.key.name + " is invalid", causes);
    object["spec"] = judged["spec"];
  }
  Json& metadata = object["metadata"];
  metadata["resourceVersion"] = std::to_string(++version_);
  if (before.is_null()) {
    metadata["uid"] = "uid-" + std::to_string(version_);
    metadata["generation"] = 1;
    metadata["creationTimestamp"] = base::to_rfc3339(clock().wall());
  } else if (before.value("spec", Json()) != object.value("spec", Json())) {
    metadata["generation"] = metadata.value("generation", 0) + 1;
  }
  if (!query.contains("dryRun")) objects_[path_of(target.resource, target.key)] = object;
  return net::answer(200, base::to_text(object));
}

net::Answer FakeCluster::remove(const Target& target, const net::Request& request) {
  Json object = find(target.resource, target.key);
  if (object.is_null()) return status_answer(404, "NotFound", target.key.name + " not found");
  const Json body = parsed(request);
  if (body.value(Json::json_pointer("/preconditions/uid"), "") != kube::identity_of(object).uid)
    return status_answer(409, "Conflict", "the UID in the precondition does not match");
  if (object["metadata"].value("finalizers", Json::array()).empty()) {
    objects_.erase(path_of(target.resource, target.key));
    return net::answer(200, R"({"kind":"Status","status":"Success"})");
  }
  object["metadata"]["deletionTimestamp"] = base::to_rfc3339(clock().wall());
  write(target.resource, object);
  return net::answer(200, base::to_text(object));
}

}  // namespace cli
