#include "controller/cluster/cluster_store.h"

#include <algorithm>

#include "libs/api/annotations.h"
#include "libs/kube/explain.h"

namespace controller {

using api::Expected;
using api::Key;
using api::Sandbox;
using api::SandboxProvider;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;
using kube::JsonPatch;

namespace {

const kube::WriteOptions kStatus{.subresource = "status"};
constexpr const char* kByUid = "uid";
constexpr const char* kByProvider = "provider";

std::string pointer_to_annotation(std::string_view name) {
  std::string pointer = "/metadata/annotations/";
  for (const char letter : name) {
    if (letter == '/')
      pointer += "~1";
    else if (letter == '~')
      pointer += "~0";
    else
      pointer += letter;
  }
  return pointer;
}

JsonPatch only_if(const Expected& expected) {
  JsonPatch patch;
  patch.test("/metadata/uid", expected.uid);
  if (!expected.resource_version.empty())
    patch.test("/metadata/resourceVersion", expected.resource_version);
  return patch;
}

bool is_ours(const std::vector<std::string>& finalizers) {
  return std::ranges::find(finalizers, api::kFinalizer) != finalizers.end();
}

}  // namespace

ClusterStore::ClusterStore(kube::Client& client, const base::Clock& clock,
                           ClusterStoreSettings settings)
    : client_(client),
      settings_(std::move(settings)),
      keepsakes_(client, settings_.own_space, settings_.release),
      events_(client, clock, {.instance = settings_.instance}),
      sandboxes_(client, clock, kube::kSandboxes, {settings_.space}, api::sandbox_from_json),
      providers_(client, clock, kube::kSandboxProviders, {}, api::provider_from_json) {
  sandboxes_.store().add_index(
      kByUid, [](const Sandbox& each) -> const std::string& { return each.metadata.uid; });
  sandboxes_.store().add_index(
      kByProvider, [](const Sandbox& each) -> const std::string& { return each.spec.provider; });
}

Result<Done> ClusterStore::start(base::Milliseconds patience, std::stop_token stop) {
  // A list of one tells what is in the way, where a mirror would try again and again.
  for (const auto& [resource, scope] : {std::pair(kube::kSandboxProviders, kube::Scope{}),
                                        std::pair(kube::kSandboxes, kube::Scope{settings_.space})})
    if (const auto listed = client_.list(resource, scope, {.limit = 1}, stop); !listed)
      return kube::explained(listed.error(), client_);
  sandboxes_.start();
  providers_.start();
  if (sandboxes_.wait_until_synced(patience, stop) && providers_.wait_until_synced(patience, stop))
    return Done{};
  return base::error(ErrorCode::kUnavailable, "the API server at ", client_.config().cluster.server,
                     " did not list all Sandboxes and SandboxProviders in time");
}

std::shared_ptr<const Sandbox> ClusterStore::find_sandbox(const Key& key) const {
  return sandboxes_.store().find(key);
}
std::vector<std::shared_ptr<const Sandbox>> ClusterStore::sandboxes() const {
  return sandboxes_.store().all();
}
std::vector<std::shared_ptr<const Sandbox>> ClusterStore::sandboxes_of(
    const std::string& provider) const {
  return sandboxes_.store().find_by(kByProvider, provider);
}
std::shared_ptr<const Sandbox> ClusterStore::find_by_uid(const std::string& uid) const {
  const auto found = sandboxes_.store().find_by(kByUid, uid);
  return found.empty() ? nullptr : found.front();
}
std::shared_ptr<const SandboxProvider> ClusterStore::find_provider(const std::string& name) const {
  return providers_.store().find({"", name});
}
std::vector<std::shared_ptr<const SandboxProvider>> ClusterStore::providers() const {
  return providers_.store().all();
}

Result<std::optional<Sandbox>> ClusterStore::get_sandbox(const Key& key) {
  auto found = client_.get(kube::kSandboxes, key);
  if (!found && found.error().reason == kube::Reason::kNotFound) return std::optional<Sandbox>();
  if (!found) return base::Error(found.error());
  kube::make_compact(*found);
  TRY(Sandbox sandbox, api::sandbox_from_json(*found));
  return std::optional(std::move(sandbox));
}

Result<std::string> ClusterStore::get_secret(const Key& secret, const std::string& key) {
  return secret_value(client_, secret, key);
}

// The object as it is mirrored, if it is the one that is expected. What a mirror knows is never
// older than what its own process wrote, so that a difference is somebody else's doing.
Result<std::shared_ptr<const Sandbox>> ClusterStore::held(const Key& key,
                                                          const Expected& expected) const {
  const auto found = find_sandbox(key);
  if (!found) return base::error(ErrorCode::kNotFound, "there is no Sandbox ", api::to_text(key));
  const api::Metadata& metadata = found->metadata;
  if (metadata.uid != expected.uid)
    return base::error(ErrorCode::kConflict, api::to_text(key), " is now ", metadata.uid, ", not ",
                       expected.uid);
  if (!expected.resource_version.empty() && metadata.resource_version != expected.resource_version)
    return base::error(ErrorCode::kConflict, api::to_text(key), " changed since version ",
                       expected.resource_version);
  return found;
}

// Finalizers alone go by a patch that tests them; together with annotations they go by a merge, for
// whether an object has annotations that are not mirrored is not known here.
Result<Sandbox> ClusterStore::update_metadata(const Key& key, const Expected& expected,
                                              const std::map<std::string, std::string>& annotations,
                                              const std::vector<std::string>& finalizers) {
  TRY(const auto before, held(key, expected));
  const api::Metadata& metadata = before->metadata;
  if (is_ours(metadata.finalizers) && !is_ours(finalizers))
    CHECK_OK(keepsakes_.forget_way_in(metadata.uid));
  if (annotations == metadata.annotations && finalizers == metadata.finalizers) return *before;
  if (annotations == metadata.annotations && !metadata.finalizers.empty()) {
    const JsonPatch patch = only_if(expected)
                                .test("/metadata/finalizers", metadata.finalizers)
                                .replace("/metadata/finalizers", finalizers);
    return sandboxes_.write(key, [&] { return client_.patch(kube::kSandboxes, key, patch); });
  }
  const Json change = {{"metadata",
                        // Those that we do not mirror stay as they are.
                        {{"annotations", difference(metadata.annotations, annotations)},
                         {"finalizers", finalizers}}}};
  return sandboxes_.write(key, [&] {
    return client_.merge(kube::kSandboxes, key, change, {metadata.uid, metadata.resource_version});
  });
}

// What an API server has answered is on its disk.
Result<Sandbox> ClusterStore::update_status(const Key& key, const Expected& expected,
                                            const api::SandboxStatus& status, Durability) {
  TRY(const auto before, held(key, expected));
  if (before->status == status) return *before;
  const JsonPatch patch = only_if(expected).add("/status", api::to_json(status));
  return sandboxes_.write(key,
                          [&] { return client_.patch(kube::kSandboxes, key, patch, kStatus); });
}

Result<Sandbox> ClusterStore::bind(const Key& key, const std::string& uid,
                                   const api::Attempt& attempt, const api::SandboxStatus& status) {
  TRY(const auto before, held(key, {uid}));
  if (api::attempt_of(before->metadata) != attempt)
    return base::error(ErrorCode::kConflict, api::to_text(key), " has another attempt on record");
  const api::SandboxStatus& old = before->status;
  if (!old.sandbox_id.empty() && old.epoch >= status.epoch)
    return base::error(ErrorCode::kConflict, api::to_text(key), " is bound to ", old.sandbox_id,
                       " already");
  const std::string annotation(api::kAttemptAnnotation);
  JsonPatch patch = only_if({uid});
  patch.test(pointer_to_annotation(annotation), before->metadata.annotations.at(annotation));
  // What is not there cannot be tested; that nobody wrote since can be.
  if (old.sandbox_id.empty()) {
    patch.test("/metadata/resourceVersion", before->metadata.resource_version);
  } else {
    patch.test("/status/sandboxID", old.sandbox_id).test("/status/epoch", old.epoch);
  }
  patch.add("/status", api::to_json(status));
  return sandboxes_.write(key,
                          [&] { return client_.patch(kube::kSandboxes, key, patch, kStatus); });
}

Result<SandboxProvider> ClusterStore::update_provider_status(const std::string& name,
                                                             const Expected& expected,
                                                             const api::ProviderStatus& status) {
  const Key key{"", name};
  const JsonPatch patch = only_if(expected).add("/status", api::to_json(status));
  return providers_.write(
      key, [&] { return client_.patch(kube::kSandboxProviders, key, patch, kStatus); });
}

Result<Done> ClusterStore::hold_provider(const std::string& name, const std::string& uid,
                                         bool held) {
  const auto found = find_provider(name);
  if (!found || found->metadata.uid != uid) return Done{};
  const api::Metadata& metadata = found->metadata;
  std::vector<std::string> finalizers = metadata.finalizers;
  std::erase(finalizers, std::string(api::kProviderFinalizer));
  const bool is_held = finalizers.size() < metadata.finalizers.size();
  // Who is being deleted takes no new finalizer.
  if (held == is_held || (held && metadata.deleted)) return Done{};
  if (held) finalizers.emplace_back(api::kProviderFinalizer);
  const Json change = {{"metadata", {{"finalizers", finalizers}}}};
  CHECK_OK(providers_.write(metadata.key, [&] {
    return client_.merge(kube::kSandboxProviders, metadata.key, change,
                         {metadata.uid, metadata.resource_version});
  }));
  return Done{};
}

Result<Done> ClusterStore::delete_sandbox(const Key& key, const std::string& uid) {
  const auto removed = client_.remove(kube::kSandboxes, key, {.preconditions = {.uid = uid}});
  if (!removed) return base::Error(removed.error());
  return Done{};
}

// Not as a write of our own, whose event nobody would hear of: whoever acts for it may be us. It
// has annotations, since it is bound.
Result<Done> ClusterStore::request_wake(const Key& key, const Expected& expected,
                                        const std::string& value) {
  const JsonPatch patch = only_if(expected).add(pointer_to_annotation(api::kWakeAnnotation), value);
  const auto written = client_.patch(kube::kSandboxes, key, patch);
  if (!written) return base::Error(written.error());
  return Done{};
}

void ClusterStore::record_event(const Sandbox& regarding, const api::Event& event) {
  events_.record({kube::kSandboxes, regarding.metadata.key, regarding.metadata.uid}, event);
}

Result<Done> ClusterStore::add_release(const Release& release) {
  return keepsakes_.add_release(release);
}
Result<std::vector<ClusterStore::Release>> ClusterStore::releases(const std::string& provider) {
  return keepsakes_.releases(provider);
}
Result<Done> ClusterStore::remove_release(const std::string& provider,
                                          const std::string& sandbox_id) {
  return keepsakes_.remove_release(provider, sandbox_id);
}

Result<Done> ClusterStore::keep_way_in(const Key& key, const std::string& uid, const WayIn& way) {
  CHECK_OK(held(key, {uid}));
  return keepsakes_.keep_way_in(
      uid, way, [this](const std::string& each) { return find_by_uid(each) != nullptr; });
}

Result<std::optional<ClusterStore::WayIn>> ClusterStore::kept_way_in(const std::string& uid) {
  return keepsakes_.way_in(uid);
}

void ClusterStore::on_sandbox_change(std::function<void(const Key&)> changed) {
  sandboxes_.on_change(std::move(changed));
}

void ClusterStore::on_provider_change(std::function<void(const std::string& name)> changed) {
  providers_.on_change([changed = std::move(changed)](const Key& key) { changed(key.name); });
}

Result<std::string> fleet_id_of(kube::Client& client, const std::string& own_space,
                                const std::string& release) {
  const auto system = client.get(kube::kNamespaces, {"", "kube-system"});
  if (!system) return kube::explained(system.error(), client);
  return kube::identity_of(*system).uid + "." + own_space + "." + release;
}

}  // namespace controller
