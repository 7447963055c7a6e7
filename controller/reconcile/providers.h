#pragma once

#include <map>
#include <memory>
#include <string>

#include "controller/gate/gate.h"
#include "controller/reconcile/observation.h"
#include "libs/api/provider.h"
#include "libs/base/result.h"

namespace controller {

// A complete list of a provider's E2B sandboxes of our fleet, sorted by the UID they carry.
struct Polled {
  base::Moment started = {};
  std::optional<base::WallTime> provider_time = {};
  std::map<std::string, std::vector<e2b::SandboxInfo>> sandboxes = {};
};

// A provider that can be asked.
struct Session {
  std::shared_ptr<const api::SandboxProvider> provider;
  std::shared_ptr<Gate> gate;
  std::shared_ptr<const Polled> polled = {};  // The last complete list; none yet: null.
};

struct ProviderProblem : base::Error {
  std::string reason;  // Of the catalogue.
};

class Providers {
 public:
  virtual ~Providers() = default;
  virtual base::Result<Session, ProviderProblem> session(const std::string& name) = 0;
};

}  // namespace controller
