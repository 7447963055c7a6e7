#include "controller/attach/ways.h"

#include "controller/prepare/sandbox_reach.h"

namespace controller {

base::Result<envd::Route> Ways::to(const api::Sandbox& sandbox, std::stop_token stop) {
  const std::string& id = sandbox.status.sandbox_id;
  TRY(const Session session, providers_.session(sandbox.spec.provider));
  std::optional<e2b::Handle> handle = memories_.recall(sandbox.metadata.uid).handle;
  if (!handle || handle->id != id) {
    TRY(handle, way_in_.look(sandbox, id, session.gate->as(Priority::kResume), stop));
  }
  return route_to_executor(session.provider->spec, *handle);
}

}  // namespace controller
