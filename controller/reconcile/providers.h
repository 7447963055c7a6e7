#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controller/gate/gate.h"
#include "controller/reconcile/observation.h"
#include "libs/api/provider.h"
#include "libs/base/result.h"

namespace controller {

// A complete list of a provider's E2B sandboxes of our fleet.
struct Polled {
  base::Moment started = {};
  std::optional<base::WallTime> provider_time = {};
  std::vector<Sighting> sandboxes = {};  // Sorted by the UID they carry.

  std::span<const Sighting> of(const std::string& uid) const {
    return std::ranges::equal_range(sandboxes, uid, {}, &Sighting::uid);
  }
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
