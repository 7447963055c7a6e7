#include "cli/resources/cluster_backend.h"

#include <algorithm>

#include "libs/api/annotations.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "libs/kube/explain.h"
#include "libs/kube/recorded_event.h"

namespace cli {

using base::Done;
using base::Error;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;
using kube::Reason;

namespace {

std::string title(std::string_view kind, const api::Key& key) {
  return base::lower(kind) + "/" + key.name;
}
std::string place(const api::Key& key) {
  return key.space.empty() ? "" : " in namespace " + key.space;
}

const kube::Resource& resource_of(Collection of) {
  switch (of) {
    case Collection::kSandboxes:
      return kube::kSandboxes;
    case Collection::kProviders:
      return kube::kSandboxProviders;
    case Collection::kEvents:
      break;
  }
  return kube::kEvents;
}

kube::Scope scope_of(const Query& query) {
  const auto& [space, name] = query.where;
  if (query.of == Collection::kEvents)
    return {.space = space,
            .field_selector =
                "regarding.kind=Sandbox" + (name.empty() ? "" : ",regarding.name=" + name)};
  return {.space = space, .field_selector = name.empty() ? "" : "metadata.name=" + name};
}

// Others have a kind of this name too.
bool is_about_ours(const Json& event) {
  const Json* regarding = base::object_at(event, "regarding");
  return regarding && base::text_at(*regarding, "apiVersion")
                          .value_or("")
                          .starts_with(kube::kSandboxes.group + "/");
}

}  // namespace

ClusterBackend::ClusterBackend(kube::Client& client, const base::Clock& clock,
                               std::function<void(const std::string&)> say)
    : client_(client), clock_(clock), say_(std::move(say)) {}

// ---- Reading ---------------------------------------------------------------------------------

Error ClusterBackend::explained(const kube::Refusal& refusal) {
  return kube::explained(refusal, client_);
}

Result<std::vector<Json>> ClusterBackend::list(const kube::Resource& resource,
                                               const kube::Scope& scope) {
  std::vector<Json> all;
  kube::PageRequest page;
  for (int pages = 0; pages < kPagesMax; ++pages) {
    auto listed = client_.list(resource, scope, page);
    // It changed for so long that the server forgot where we began: once more, in one piece.
    if (!listed && listed.error().reason == Reason::kExpired && page.limit > 0) {
      all.clear();
      page = {.limit = 0};
      listed = client_.list(resource, scope, page);
    }
    if (!listed) return explained(listed.error());
    std::ranges::move(listed->items, std::back_inserter(all));
    page.continue_token = listed->continue_token;
    if (page.continue_token.empty()) return all;
  }
  return error(ErrorCode::kUnavailable, "list ", resource.plural, ": the API server's list has ",
               "more than ", std::to_string(kPagesMax), " pages; ask for one namespace, or name");
}

Result<std::vector<Json>> ClusterBackend::get(const kube::Resource& resource, const Where& where) {
  auto found = client_.get(resource, {where.space, where.name});
  if (found) return std::vector<Json>{*std::move(found)};
  if (found.error().reason == Reason::kNotFound) return std::vector<Json>{};
  return explained(found.error());
}

// Who may not look at namespaces learns nothing here.
Result<Done> ClusterBackend::check_space(const std::string& space) {
  if (space.empty()) return Done{};
  const auto found = client_.get(kube::kNamespaces, {"", space});
  if (found || found.error().reason != Reason::kNotFound) return Done{};
  return error(ErrorCode::kNotFound, "there is no namespace \"", space, "\"");
}

Result<std::vector<Json>> ClusterBackend::objects(const Query& query) {
  const auto& resource = resource_of(query.of);
  const auto scope = scope_of(query);
  if (follower_ && follower_->follows(resource, scope)) {
    const auto trouble = follower_->trouble();
    if (trouble && trouble->refusal.code == ErrorCode::kDenied) return explained(trouble->refusal);
    if (auto followed = follower_->objects()) last_ = *std::move(followed);
    return last_;
  }
  const bool single = query.of != Collection::kEvents && !query.where.name.empty() &&
                      (!resource.namespaced || !query.where.space.empty());
  auto found = single ? get(resource, query.where) : list(resource, scope);
  if (!found) return found;
  if (found->empty()) CHECK_OK(check_space(query.where.space));
  last_ = *found;
  return found;
}

template <typename Resource>
std::vector<Resource> ClusterBackend::read_all(const std::vector<Json>& objects,
                                               Result<Resource> (*read)(const Json&)) {
  std::vector<Resource> all;
  for (const Json& each : objects) {
    auto resource = read(each);
    if (resource)
      all.push_back(*std::move(resource));
    else
      say_("warning: " + to_text(kube::identity_of(each).key) +
           " is not shown, for this program cannot read it: " + resource.error().message);
  }
  return all;
}

Result<std::vector<api::Sandbox>> ClusterBackend::sandboxes(const Where& where) {
  TRY(const auto found, objects({Collection::kSandboxes, where}));
  return read_all<api::Sandbox>(found, api::sandbox_from_json);
}

Result<std::optional<api::Sandbox>> ClusterBackend::sandbox(const api::Key& key) {
  TRY(const auto found, objects({Collection::kSandboxes, {key.space, key.name}}));
  if (found.empty()) return std::optional<api::Sandbox>();
  TRY(auto sandbox, api::sandbox_from_json(found[0]));
  return std::optional(std::move(sandbox));
}

Result<std::vector<api::SandboxProvider>> ClusterBackend::providers(const std::string& name) {
  TRY(const auto found, objects({Collection::kProviders, {"", name}}));
  return read_all<api::SandboxProvider>(found, api::provider_from_json);
}

Result<std::vector<api::RecordedEvent>> ClusterBackend::events(const Where& regarding) {
  TRY(const auto found, objects({Collection::kEvents, regarding}));
  std::vector<api::RecordedEvent> all;
  for (const Json& each : found)
    if (auto event = is_about_ours(each) ? kube::recorded_event_from(each) : std::nullopt)
      all.push_back(*std::move(event));
  std::ranges::sort(all, {}, [](const auto& event) { return std::pair(event.last, event.first); });
  return all;
}

bool ClusterBackend::await_change(const Query& query, base::Milliseconds most) {
  const auto& resource = resource_of(query.of);
  const auto scope = scope_of(query);
  if (!follower_ || !follower_->follows(resource, scope))
    follower_ = std::make_unique<Follower>(client_, clock_, resource, scope);
  follower_->await_news(most);
  const auto trouble = follower_->trouble();
  // One cut is everyday life.
  if (trouble && trouble->failures > 1 && !std::exchange(told_trouble_, true))
    say_("warning: what is shown may be old, for the watch was cut off: " +
         explained(trouble->refusal).message + "; trying again");
  if (!trouble && std::exchange(told_trouble_, false)) say_("the watch goes on");
  return true;
}

// ---- Asking ----------------------------------------------------------------------------------

Result<Json> ClusterBackend::merge_spec(const api::Sandbox& seen, Json spec) {
  auto merged = client_.merge(kube::kSandboxes, seen.metadata.key, {{"spec", std::move(spec)}},
                              {.uid = seen.metadata.uid});
  if (!merged) return explained(merged.error());
  return *std::move(merged);
}

Result<Asked> ClusterBackend::set_desired_state(const api::Sandbox& seen, api::DesiredState state) {
  CHECK_OK(merge_spec(seen, {{"desiredState", to_word(state)}}));
  const auto& key = seen.metadata.key;
  return Asked{title("Sandbox", key) + " desiredState " + std::string(to_word(state)) + place(key)};
}

Result<Asked> ClusterBackend::request(const api::Sandbox& seen, std::string_view annotation,
                                      const std::string& what) {
  const auto& key = seen.metadata.key;
  const Json change = {
      {"metadata",
       {{"annotations", {{std::string(annotation), base::to_rfc3339(clock_.wall())}}}}}};
  auto merged = client_.merge(kube::kSandboxes, key, change, {.uid = seen.metadata.uid});
  if (!merged) return explained(merged.error());
  return Asked{title("Sandbox", key) + " " + what + " requested" + place(key)};
}

Result<Asked> ClusterBackend::request_wake(const api::Sandbox& seen) {
  return request(seen, api::kWakeAnnotation, "wake");
}

Result<Asked> ClusterBackend::request_look(const api::Sandbox& seen) {
  return request(seen, api::kReconcileAnnotation, "look");
}

// What pause or resume set under our name is nobody else's. The version keeps what others set
// meanwhile from being taken along.
kube::Answer<Json> ClusterBackend::take_back(const ClusterDocument& document,
                                             const kube::WriteOptions& options) {
  TRY(const Json now, client_.get(document.resource, document.key));
  Json object = document.object;
  object["metadata"]["resourceVersion"] = kube::resource_version_of(now);
  auto applied = client_.apply(document.resource, object, false, options);
  if (applied || !conflicts_only_with(kFieldManager, applied.error())) return applied;
  return client_.apply(document.resource, object, true, options);
}

Result<Json> ClusterBackend::put(const ClusterManifest& manifest, const ClusterDocument& document,
                                 bool force, bool dry_run) {
  const kube::WriteOptions options{.dry_run = dry_run, .strict = true};
  auto applied = client_.apply(document.resource, document.object, force, options);
  if (!applied && conflicts_only_with(kFieldManager, applied.error()))
    applied = take_back(document, options);
  if (applied) return *std::move(applied);
  if (kube::is_unserved(applied.error())) return explained(applied.error());
  return explain_apply(applied.error(), manifest, document, client_.config());
}

Result<Asked> ClusterBackend::apply(const Manifest& manifest) {
  TRY(const auto read, read_for_cluster(manifest));
  // Of several, none is applied when the server would refuse one.
  if (read.documents.size() > 1)
    for (const auto& document : read.documents)
      CHECK_OK(put(read, document, manifest.force_conflicts, true));
  Asked asked;
  for (const auto& document : read.documents) {
    auto applied = put(read, document, manifest.force_conflicts, false);
    if (!applied && !asked.what.empty())
      return Error{applied.error().code,
                   applied.error().message + "\nbefore that, these were applied:\n" + asked.what};
    if (!applied) return applied.error();
    if (!asked.what.empty()) asked.what += "\n";
    asked.what += title(document.resource.kind, document.key) + " applied" + place(document.key);
    if (document.resource != kube::kSandboxes) continue;
    TRY(const auto sandbox, api::sandbox_from_json(*applied));
    asked.sandboxes.emplace(document.key, sandbox.spec);
  }
  return asked;
}

Result<Asked> ClusterBackend::remove(const api::Sandbox& seen, const Removal& removal) {
  const auto& key = seen.metadata.key;
  std::string what = title("Sandbox", key);
  if (removal.policy) {
    CHECK_OK(merge_spec(seen, {{"deletionPolicy", to_word(*removal.policy)}}));
    what += " deletionPolicy " + std::string(to_word(*removal.policy)) + ",";
  }
  const auto left =
      client_.remove(kube::kSandboxes, key, {.preconditions = {.uid = seen.metadata.uid}});
  if (!left && left.error().reason != Reason::kNotFound) return explained(left.error());
  const bool stays = left && *left;
  return Asked{what + (stays ? " deletion requested" : " deleted") + place(key)};
}

}  // namespace cli
