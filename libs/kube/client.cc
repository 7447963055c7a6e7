#include "libs/kube/client.h"

#include <algorithm>

#include "libs/base/strings.h"

namespace kube {

using base::Done;
using base::ErrorCode;
using base::Json;

namespace {

constexpr std::size_t kRefusalBytesMax = 64u << 10;

bool is_success(int status) { return status >= 200 && status < 300; }

// A query string that grows; empty values are left out.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += std::string(name) + "=" + base::percent_encode(value);
    return *this;
  }
  Query& add(const Scope& scope) {
    return add("labelSelector", scope.label_selector).add("fieldSelector", scope.field_selector);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string name_of(const Resource& resource, const api::Key& key) {
  return resource.plural + " " + (key.space.empty() ? key.name : to_text(key));
}

Refusal unnamed(std::string_view what) {
  return refusal_of(base::error(ErrorCode::kInvalid, what, ": the object has no name"));
}

Refusal nonsense(std::string_view what, std::string_view why) {
  Refusal refusal{base::error(ErrorCode::kUnavailable, what, ": the API server's answer ", why)};
  refusal.reason = Reason::kNoAnswer;
  return refusal;
}

Json preconditions_json(const Preconditions& expected) {
  Json json = Json::object();
  if (!expected.uid.empty()) json["uid"] = expected.uid;
  if (!expected.resource_version.empty()) json["resourceVersion"] = expected.resource_version;
  return json;
}

// The API server holds a written object's own uid and resourceVersion against what it has.
void demand(const Preconditions& expected, Json& object) {
  const Json demanded = preconditions_json(expected);
  if (!demanded.empty()) object["metadata"].update(demanded);
}

Refusal as_conflict(Refusal refusal, Reason reason) {
  refusal.reason = reason;
  refusal.code = ErrorCode::kConflict;
  return refusal;
}

// In a patch the server takes another object's UID for a change of this one's, and says so.
Refusal with_uid_as_condition(Refusal refusal, const Preconditions& expected) {
  const bool other =
      !expected.uid.empty() &&
      std::ranges::any_of(refusal.causes, [](const Cause& c) { return c.field == "metadata.uid"; });
  return other ? as_conflict(std::move(refusal), Reason::kConflict) : refusal;
}

const char* to_word(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
    case Propagation::kOfKind:
      break;
  }
  return "";
}

net::Request with_body(const char* method, std::string path, const char* type, const Json& body) {
  net::Request request{.method = method, .url = std::move(path)};
  request.headers.add("Accept", "application/json");
  request.headers.add("Content-Type", type);
  request.body = base::to_text(body);
  return request;
}

constexpr const char* kJsonType = "application/json";

Page page_of(Json list, const Resource& resource) {
  Page page;
  page.resource_version = resource_version_of(list);
  if (const Json* metadata = base::object_at(list, "metadata")) {
    page.continue_token = base::text_at(*metadata, "continue").value_or("");
    page.remaining = base::integer_at(*metadata, "remainingItemCount").value_or(0);
  }
  if (!base::array_at(list, "items")) return page;  // An empty list of some servers.
  for (Json& item : list["items"]) {
    if (!item.is_object()) continue;
    // Within a list, objects need not say what they are.
    item.emplace("apiVersion", api_version_of(resource));
    item.emplace("kind", resource.kind);
    page.items.push_back(std::move(item));
  }
  return page;
}

}  // namespace

JsonPatch& JsonPatch::test(const std::string& pointer, Json value) {
  operations_.push_back({{"op", "test"}, {"path", pointer}, {"value", std::move(value)}});
  return *this;
}
JsonPatch& JsonPatch::add(const std::string& pointer, Json value) {
  operations_.push_back({{"op", "add"}, {"path", pointer}, {"value", std::move(value)}});
  return *this;
}
JsonPatch& JsonPatch::replace(const std::string& pointer, Json value) {
  operations_.push_back({{"op", "replace"}, {"path", pointer}, {"value", std::move(value)}});
  return *this;
}
JsonPatch& JsonPatch::remove(const std::string& pointer) {
  operations_.push_back({{"op", "remove"}, {"path", pointer}});
  return *this;
}

Client::Client(Connection& connection, ClientSettings settings)
    : connection_(connection), settings_(std::move(settings)) {}

Answer<Json> Client::send(std::string_view what, net::Request request, base::Milliseconds timeout,
                          std::stop_token stop) {
  const auto tame = [&](std::string_view text) { return connection_.tame(text); };
  if (!request.headers.find("Accept")) request.headers.add("Accept", kJsonType);
  const net::Reply reply = connection_.send(std::move(request), timeout, std::move(stop));
  if (!reply) return refusal_of(what, reply.error());
  if (!is_success(reply->status)) return refusal_of(what, *reply, tame);
  auto json = base::parse_json(reply->body);
  if (!json || !json->is_object()) return nonsense(what, "is no JSON object");
  return *std::move(json);
}

std::string Client::write_query(const WriteOptions& options, bool forced) const {
  return Query()
      .add("fieldManager", settings_.field_manager)
      .add("force", forced ? "true" : "")
      .add("dryRun", options.dry_run ? "All" : "")
      .add("fieldValidation", options.strict ? "Strict" : "")
      .text();
}

Answer<Json> Client::get(const Resource& resource, const api::Key& key, std::stop_token stop) {
  return send("get " + name_of(resource, key), {"GET", path_of(resource, key)}, settings_.timeout,
              std::move(stop));
}

Answer<Page> Client::list(const Resource& resource, const Scope& scope, const PageRequest& page,
                          std::stop_token stop) {
  const std::string query = Query()
                                .add(scope)
                                .add("limit", page.limit > 0 ? std::to_string(page.limit) : "")
                                .add("continue", page.continue_token)
                                .add("resourceVersion", page.resource_version)
                                .add("resourceVersionMatch", page.resource_version_match)
                                .text();
  net::Request request{"GET", path_of_all(resource, scope.space) + query};
  request.body_bytes_max = page.limit > 0 ? kPageBytesMax : kWholeListBytesMax;
  const std::string what = "list " + resource.plural;
  TRY(Json list, send(what, std::move(request), settings_.list_timeout, std::move(stop)));
  Page read = page_of(std::move(list), resource);
  if (read.resource_version.empty()) return nonsense(what, "has no resourceVersion");
  return read;
}

Answer<Json> Client::create(const Resource& resource, const Json& object,
                            const WriteOptions& options, std::stop_token stop) {
  const api::Key key = identity_of(object).key;
  return send(
      "create " + name_of(resource, key),
      with_body("POST", path_of_all(resource, key.space) + write_query(options), kJsonType, object),
      settings_.timeout, std::move(stop));
}

Answer<Json> Client::update(const Resource& resource, Json object, const Preconditions& expected,
                            const WriteOptions& options, std::stop_token stop) {
  const api::Key key = identity_of(object).key;
  const std::string what = "update " + name_of(resource, key);
  if (key.name.empty()) return unnamed(what);
  demand(expected, object);
  return send(what,
              with_body("PUT", path_of(resource, key, options.subresource) + write_query(options),
                        kJsonType, object),
              settings_.timeout, std::move(stop));
}

Answer<Json> Client::patch(const Resource& resource, const api::Key& key, const JsonPatch& patch,
                           const WriteOptions& options, std::stop_token stop) {
  auto patched =
      send("patch " + name_of(resource, key),
           with_body("PATCH", path_of(resource, key, options.subresource) + write_query(options),
                     "application/json-patch+json", patch.operations()),
           settings_.timeout, std::move(stop));
  // An object that breaks a rule is refused with causes, a patch that does not fit without.
  if (!patched && patched.error().status == 422 && patched.error().causes.empty())
    return as_conflict(patched.error(), Reason::kPatchUnfit);
  return patched;
}

Answer<Json> Client::merge(const Resource& resource, const api::Key& key, Json change,
                           const Preconditions& expected, const WriteOptions& options,
                           std::stop_token stop) {
  demand(expected, change);
  auto merged =
      send("patch " + name_of(resource, key),
           with_body("PATCH", path_of(resource, key, options.subresource) + write_query(options),
                     "application/merge-patch+json", change),
           settings_.timeout, std::move(stop));
  if (!merged) return with_uid_as_condition(merged.error(), expected);
  return merged;
}

Answer<Json> Client::apply(const Resource& resource, const Json& object, bool force,
                           const WriteOptions& options, std::stop_token stop) {
  const api::Key key = identity_of(object).key;
  const std::string what = "apply " + name_of(resource, key);
  if (key.name.empty()) return unnamed(what);
  return send(
      what,
      with_body("PATCH", path_of(resource, key, options.subresource) + write_query(options, force),
                "application/apply-patch+yaml", object),
      settings_.timeout, std::move(stop));
}

Answer<std::optional<Json>> Client::remove(const Resource& resource, const api::Key& key,
                                           const DeleteOptions& options, std::stop_token stop) {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (const Json expected = preconditions_json(options.preconditions); !expected.empty())
    body["preconditions"] = expected;
  if (options.propagation != Propagation::kOfKind)
    body["propagationPolicy"] = to_word(options.propagation);
  if (options.grace) body["gracePeriodSeconds"] = options.grace->count();
  if (options.dry_run) body["dryRun"] = {"All"};
  TRY(Json left, send("delete " + name_of(resource, key),
                      with_body("DELETE", path_of(resource, key), kJsonType, body),
                      settings_.timeout, std::move(stop)));
  // What is gone is told as a Status, or as the object in its last state.
  const Json* metadata = base::object_at(left, "metadata");
  const Json* finalizers = metadata ? base::array_at(*metadata, "finalizers") : nullptr;
  const bool stays =
      (finalizers && !finalizers->empty()) ||
      (metadata && base::integer_at(*metadata, "deletionGracePeriodSeconds").value_or(0) > 0);
  if (base::text_at(left, "kind") == "Status" || !stays) return std::optional<Json>();
  return std::optional(std::move(left));
}

Answer<Json> Client::fetch(const std::string& path, std::stop_token stop) {
  return send("get " + path, {"GET", path}, settings_.timeout, std::move(stop));
}

Answer<Json> Client::post(const std::string& path, const Json& body, std::stop_token stop) {
  return send("post " + path, with_body("POST", path, kJsonType, body), settings_.timeout,
              std::move(stop));
}

Answer<Done> Client::watch(const Resource& resource, const Scope& scope,
                           const WatchRequest& request,
                           const std::function<bool(WatchEvent&&)>& take, std::stop_token stop) {
  const std::string what = "watch " + resource.plural;
  const auto tame = [&](std::string_view text) { return connection_.tame(text); };
  Query query;
  query.add("watch", "true")
      .add("allowWatchBookmarks", "true")
      .add(scope)
      .add("resourceVersion", request.resource_version)
      .add("timeoutSeconds", std::to_string(request.timeout.count()));
  if (request.initial_events)
    query.add("sendInitialEvents", "true").add("resourceVersionMatch", "NotOlderThan");
  net::Request get{"GET", path_of_all(resource, scope.space) + query.text()};
  get.headers.add("Accept", kJsonType);

  WatchDecoder decoder;
  net::Response refused;  // What came instead of a watch.
  std::optional<Refusal> trouble;
  const auto take_event = [&](WatchEvent&& event) {
    if (event.kind != WatchEvent::Kind::kError) return take(std::move(event));
    trouble = refusal_of_status(what, event.object, tame);
    return false;
  };
  const net::Sink sink{
      [&](const net::Response& head) {
        if (!is_success(head.status)) refused = head;
        return true;
      },
      [&](std::string_view bytes) {
        if (refused.status != 0) {
          refused.body.append(bytes.substr(0, kRefusalBytesMax - refused.body.size()));
          return refused.body.size() < kRefusalBytesMax;
        }
        auto fed = decoder.feed(bytes, take_event);
        if (!fed) trouble = refusal_of(what, net::Failure{fed.error()});
        return fed && *fed;
      }};
  const net::Reply reply =
      connection_.stream(std::move(get), sink, request.silence_max, std::move(stop));
  if (trouble) return *std::move(trouble);
  if (refused.status != 0) return refusal_of(what, refused, tame);
  if (!reply) return refusal_of(what, reply.error());
  if (decoder.is_amid()) return nonsense(what, "broke off within an event");
  return Done{};
}

}  // namespace kube
