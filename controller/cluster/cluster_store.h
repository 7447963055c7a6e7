#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/keepsakes.h"
#include "libs/api/resource_store.h"
#include "libs/kube/event_recorder.h"
#include "libs/kube/informer.h"

namespace controller {

struct ClusterStoreSettings {
  std::string own_space = "default";  // The controller's namespace: for all but the resources.
  std::string release = "sandfleet";  // What names there begin with.
  std::string space = {};             // Whose Sandboxes these are; empty: all namespaces'.
  std::string fleet_id = {};
  std::string instance = {};  // Which process of ours, for events.
};

// A Kubernetes cluster as a store (docs/design/controller-in-a-cluster.md): reads come from mirrors
// of the two collections, writes go out as patches that say what must still hold. Secrets are read
// one by one and never kept. Safe to use from many threads.
class ClusterStore final : public api::ResourceStore {
 public:
  // All outlive it.
  ClusterStore(kube::Client& client, const base::Clock& clock, ClusterStoreSettings settings);

  // Begins to follow the server, and returns when both mirrors are complete. kUnavailable: they are
  // not within `patience`, and why.
  base::Result<base::Done> start(base::Milliseconds patience, std::stop_token stop);

  std::shared_ptr<const api::Sandbox> find_sandbox(const api::Key& key) const override;
  std::shared_ptr<const api::Sandbox> find_by_uid(const std::string& uid) const override;
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes() const override;
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes_of(
      const std::string& provider) const override;
  std::shared_ptr<const api::SandboxProvider> find_provider(const std::string& name) const override;
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers() const override;
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key& key) override;
  base::Result<std::string> get_secret(const api::Key& secret, const std::string& key) override;
  base::Result<api::Sandbox> update_metadata(const api::Key& key, const api::Expected& expected,
                                             const std::map<std::string, std::string>& annotations,
                                             const std::vector<std::string>& finalizers) override;
  base::Result<api::Sandbox> update_status(const api::Key& key, const api::Expected& expected,
                                           const api::SandboxStatus& status,
                                           Durability durability) override;
  base::Result<api::Sandbox> bind(const api::Key& key, const std::string& uid,
                                  const api::Attempt& attempt,
                                  const api::SandboxStatus& status) override;
  base::Result<api::SandboxProvider> update_provider_status(
      const std::string& name, const api::Expected& expected,
      const api::ProviderStatus& status) override;
  base::Result<base::Done> hold_provider(const std::string& name, const std::string& uid,
                                         bool held) override;
  base::Result<base::Done> delete_sandbox(const api::Key& key, const std::string& uid) override;
  base::Result<base::Done> request_wake(const api::Key& key, const api::Expected& expected,
                                        const std::string& value) override;
  void record_event(const api::Sandbox& regarding, const api::Event& event) override;
  base::Result<base::Done> add_release(const Release& release) override;
  base::Result<std::vector<Release>> releases(const std::string& provider) override;
  base::Result<base::Done> remove_release(const std::string& provider,
                                          const std::string& sandbox_id) override;
  base::Result<base::Done> keep_way_in(const api::Key& key, const std::string& uid,
                                       const WayIn& way) override;
  base::Result<std::optional<WayIn>> kept_way_in(const std::string& uid) override;
  void on_sandbox_change(std::function<void(const api::Key&)> changed) override;
  void on_provider_change(std::function<void(const std::string& name)> changed) override;
  std::string fleet_id() const override { return settings_.fleet_id; }
  base::Result<std::string> fleet_key() override { return keepsakes_.fleet_key(); }

 private:
  base::Result<std::shared_ptr<const api::Sandbox>> held(const api::Key& key,
                                                         const api::Expected& expected) const;

  kube::Client& client_;
  const ClusterStoreSettings settings_;
  Keepsakes keepsakes_;
  kube::EventRecorder events_;
  kube::Informer<api::Sandbox> sandboxes_;
  kube::Informer<api::SandboxProvider> providers_;
};

// The name that an installation gives to all it creates, unlike that of any other: of this cluster,
// namespace and release.
base::Result<std::string> fleet_id_of(kube::Client& client, const std::string& own_space,
                                      const std::string& release);

}  // namespace controller
