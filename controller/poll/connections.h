#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "controller/reconcile/providers.h"
#include "libs/api/resource_store.h"
#include "libs/base/clock.h"

namespace controller {

// One gate and one last list per provider, made when first asked for, and again when the address
// of its API changes.
class Connections final : public Providers {
 public:
  struct Doors {
    // Whether there is a credential; its error says what to do.
    std::function<base::Result<std::string>(const api::SandboxProvider&)> api_key;
    std::function<std::shared_ptr<e2b::Cloud>(const api::SandboxProvider&)> connect;
    // A provider that was full may have room again, before those who wait for it look themselves.
    std::function<void(const std::string& provider)> room_again = {};
  };
  Connections(const api::ResourceStore& store, const base::Clock& clock, Doors doors);

  base::Result<Session, ProviderProblem> session(const std::string& name) override;

  // Forgets those of every other name, whose providers are gone.
  void keep_only(const std::set<std::string>& names);

  // Reads every page of the provider's list for our fleet: the one call a provider gets in steady
  // state. The UIDs whose E2B sandboxes are not as they were in the list before.
  base::Result<std::set<std::string>, ProviderProblem> poll(const std::string& name,
                                                            std::stop_token stop);

 private:
  struct Connection {
    std::string api_url, ca_bundle;
    std::shared_ptr<Gate> gate;
    std::shared_ptr<const Polled> polled;
  };

  const api::ResourceStore& store_;
  const base::Clock& clock_;
  const Doors doors_;
  std::mutex mutex_;
  std::map<std::string, Connection> connections_;
};

// The UIDs for which the two lists differ in ids, states or runs.
std::set<std::string> changed_uids(const Polled& before, const Polled& after);

}  // namespace controller
