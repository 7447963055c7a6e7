#pragma once

#include <utility>

#include "controller/reconcile/reconciler.h"

namespace controller {

// Shared by the parts of the Reconciler only.
struct Reconciler::Pass {
  Observation seen;
  std::optional<Session> session = {};  // Absent exactly when seen.provider_problem is there.

  const api::Sandbox& wanted() const { return seen.wanted; }
  const std::string& uid() const { return seen.wanted.metadata.uid; }
  e2b::Cloud& cloud(Priority priority) const { return session->gate->as(priority); }
};

inline Outcome failed(base::Error error) { return Outcome{.error = std::move(error)}; }

// Another address is another provider, whatever it is called.
inline const std::string& name_of_provider(const Session& session) {
  return session.provider->spec.api_url;
}

}  // namespace controller
