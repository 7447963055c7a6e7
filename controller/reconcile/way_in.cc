#include "controller/reconcile/way_in.h"

#include <utility>

#include "libs/base/log.h"

namespace controller {
namespace {

bool has_token(const e2b::Handle& handle) {
  return handle.envd_access_token || handle.traffic_access_token;
}

// What GET does not tell comes from the record, if that is of the same E2B sandbox.
void fill_in(e2b::Handle& handle, const api::ResourceStore::WayIn& kept) {
  if (handle.envd_version.empty()) handle.envd_version = kept.envd_version;
  if (!handle.envd_access_token) handle.envd_access_token = kept.envd_token;
  if (!handle.traffic_access_token) handle.traffic_access_token = kept.traffic_token;
}

}  // namespace

bool WayIn::told_once(const std::string& provider, const e2b::Handle& handle, e2b::Cloud& cloud,
                      std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    if (const auto known = told_once_.find(provider); known != told_once_.end())
      return known->second;
  }
  const auto again = cloud.handle(handle.id, stop);
  if (!again) return true;  // Nobody knows yet.
  const bool once = !*again || (*again)->envd_access_token != handle.envd_access_token ||
                    (*again)->traffic_access_token != handle.traffic_access_token;
  std::lock_guard lock(mutex_);
  told_once_[provider] = once;
  return once;
}

void WayIn::keep(const std::string& provider, const api::Sandbox& owner, const e2b::Handle& handle,
                 e2b::Cloud& cloud, std::stop_token stop) {
  if (!has_token(handle) || !told_once(provider, handle, cloud, stop)) return;
  const auto kept = store_.keep_way_in(
      owner.metadata.key, owner.metadata.uid,
      {handle.id, handle.envd_version, handle.envd_access_token, handle.traffic_access_token});
  // A restart asks the provider for new ones then.
  if (!kept)
    base::log::warn("cannot keep the tokens of a sandbox",
                    {{"sandbox", api::to_text(owner.metadata.key)}, {"error", kept.error()}});
}

base::Result<e2b::Handle> WayIn::look(const api::Sandbox& owner, const std::string& id,
                                      e2b::Cloud& cloud, std::stop_token stop) {
  TRY(const auto told, cloud.handle(id, stop));
  TRY(const auto kept, store_.kept_way_in(owner.metadata.uid));
  e2b::Handle handle = told.value_or(e2b::Handle{.id = id});
  if (kept && kept->sandbox_id == id) fill_in(handle, *kept);
  return handle;
}

base::Result<e2b::Handle> WayIn::find(const std::string& provider, const api::Sandbox& owner,
                                      const std::string& id, bool anew, e2b::Cloud& cloud,
                                      std::stop_token stop) {
  if (!anew) {
    TRY(e2b::Handle handle, look(owner, id, cloud, stop));
    if (has_token(handle)) return handle;
  }
  TRY(auto connected, cloud.connect(id, owner.spec.keep_alive.timeout, stop));
  keep(provider, owner, connected.handle, cloud, stop);
  return std::move(connected.handle);
}

}  // namespace controller
