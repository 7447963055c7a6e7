#pragma once

#include <memory>
#include <string>

#include "libs/api/reasons.h"
#include "libs/api/resource_store.h"

namespace api {

inline const std::string kFleetKey(32, 'k');

// One Sandbox, in memory; nothing may be written.
class OneSandbox : public ResourceStore {
 public:
  OneSandbox() {
    sandbox.metadata.key = {"team-a", "box"};
    sandbox.metadata.uid = "u1";
    sandbox.status.sandbox_id = "i1";
    sandbox.status.epoch = 2;
    sandbox.status.incarnation = 3;
    sandbox.status.run = 4;
    set_condition(sandbox.status.conditions, {std::string(condition::kReady), "True", "Ready", ""});
  }
  Sandbox sandbox;
  std::optional<WayIn> kept;

  std::shared_ptr<const Sandbox> find_sandbox(const Key& key) const override {
    return key == sandbox.metadata.key ? std::make_shared<Sandbox>(sandbox) : nullptr;
  }
  std::shared_ptr<const Sandbox> find_by_uid(const std::string&) const override { return nullptr; }
  std::vector<std::shared_ptr<const Sandbox>> sandboxes() const override { return {}; }
  std::vector<std::shared_ptr<const Sandbox>> sandboxes_of(const std::string&) const override {
    return {};
  }
  std::shared_ptr<const SandboxProvider> find_provider(const std::string&) const override {
    return nullptr;
  }
  std::vector<std::shared_ptr<const SandboxProvider>> providers() const override { return {}; }
  base::Result<std::optional<Sandbox>> get_sandbox(const Key&) override { return no(); }
  base::Result<std::string> get_secret(const Key&, const std::string&) override { return no(); }
  base::Result<Sandbox> update_metadata(const Key&, const Expected&,
                                        const std::map<std::string, std::string>&,
                                        const std::vector<std::string>&) override {
    return no();
  }
  base::Result<Sandbox> update_status(const Key&, const Expected&, const SandboxStatus&,
                                      Durability) override {
    return no();
  }
  base::Result<Sandbox> bind(const Key&, const std::string&, const Attempt&,
                             const SandboxStatus&) override {
    return no();
  }
  base::Result<SandboxProvider> update_provider_status(const std::string&, const Expected&,
                                                       const ProviderStatus&) override {
    return no();
  }
  base::Result<base::Done> hold_provider(const std::string&, const std::string&, bool) override {
    return no();
  }
  base::Result<base::Done> delete_sandbox(const Key&, const std::string&) override { return no(); }
  base::Result<base::Done> request_wake(const Key&, const Expected&, const std::string&) override {
    return no();
  }
  void record_event(const Sandbox&, const Event&) override {}
  base::Result<base::Done> add_release(const Release&) override { return no(); }
  base::Result<std::vector<Release>> releases(const std::string&) override { return no(); }
  base::Result<base::Done> remove_release(const std::string&, const std::string&) override {
    return no();
  }
  base::Result<base::Done> keep_way_in(const Key&, const std::string&, const WayIn&) override {
    return no();
  }
  base::Result<std::optional<WayIn>> kept_way_in(const std::string&) override { return kept; }
  void on_sandbox_change(std::function<void(const Key&)>) override {}
  void on_provider_change(std::function<void(const std::string&)>) override {}
  std::string fleet_id() const override { return "fleet"; }
  base::Result<std::string> fleet_key() override { return kFleetKey; }

 private:
  static base::Error no() { return {base::ErrorCode::kUnavailable, "not asked for"}; }
};

}  // namespace api
