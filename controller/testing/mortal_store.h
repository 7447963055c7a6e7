#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/testing/fate.h"
#include "libs/api/resource_store.h"

namespace controller::mortal {

// The store; each write is a step.
class MortalStore final : public api::ResourceStore {
 public:
  MortalStore(api::ResourceStore& store, Fate& fate) : store_(store), fate_(fate) {}

  std::shared_ptr<const api::Sandbox> find_sandbox(const api::Key& key) const override {
    return store_.find_sandbox(key);
  }
  std::shared_ptr<const api::Sandbox> find_by_uid(const std::string& uid) const override {
    return store_.find_by_uid(uid);
  }
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes() const override {
    return store_.sandboxes();
  }
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes_of(
      const std::string& provider) const override {
    return store_.sandboxes_of(provider);
  }
  std::shared_ptr<const api::SandboxProvider> find_provider(
      const std::string& name) const override {
    return store_.find_provider(name);
  }
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers() const override {
    return store_.providers();
  }
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key& key) override {
    return store_.get_sandbox(key);
  }
  base::Result<std::string> get_secret(const api::Key& secret, const std::string& key) override {
    return store_.get_secret(secret, key);
  }
  base::Result<api::Sandbox> update_metadata(const api::Key& key, const api::Expected& expected,
                                             const std::map<std::string, std::string>& annotations,
                                             const std::vector<std::string>& finalizers) override {
    return step([&] { return store_.update_metadata(key, expected, annotations, finalizers); });
  }
  base::Result<api::Sandbox> update_status(const api::Key& key, const api::Expected& expected,
                                           const api::SandboxStatus& status,
                                           Durability durability) override {
    return step([&] { return store_.update_status(key, expected, status, durability); });
  }
  base::Result<api::Sandbox> bind(const api::Key& key, const std::string& uid,
                                  const api::Attempt& attempt,
                                  const api::SandboxStatus& status) override {
    return step([&] { return store_.bind(key, uid, attempt, status); });
  }
  base::Result<api::SandboxProvider> update_provider_status(
      const std::string& name, const api::Expected& expected,
      const api::ProviderStatus& status) override {
    return step([&] { return store_.update_provider_status(name, expected, status); });
  }
  base::Result<base::Done> hold_provider(const std::string& name, const std::string& uid,
                                         bool held) override {
    return store_.hold_provider(name, uid, held);
  }
  base::Result<base::Done> delete_sandbox(const api::Key& key, const std::string& uid) override {
    return step([&] { return store_.delete_sandbox(key, uid); });
  }
  base::Result<base::Done> request_wake(const api::Key& key, const api::Expected& expected,
                                        const std::string& value) override {
    return step([&] { return store_.request_wake(key, expected, value); });
  }
  void record_event(const api::Sandbox& regarding, const api::Event& event) override {
    ++fate_.events;
    store_.record_event(regarding, event);
  }
  base::Result<base::Done> add_release(const Release& release) override {
    return step([&] { return store_.add_release(release); });
  }
  base::Result<std::vector<Release>> releases(const std::string& provider) override {
    return store_.releases(provider);
  }
  base::Result<base::Done> remove_release(const std::string& provider,
                                          const std::string& id) override {
    return step([&] { return store_.remove_release(provider, id); });
  }
  base::Result<base::Done> keep_way_in(const api::Key& key, const std::string& uid,
                                       const WayIn& way) override {
    return step([&] { return store_.keep_way_in(key, uid, way); });
  }
  base::Result<std::optional<WayIn>> kept_way_in(const std::string& uid) override {
    return store_.kept_way_in(uid);
  }
  void on_sandbox_change(std::function<void(const api::Key&)> changed) override {
    store_.on_sandbox_change(std::move(changed));
  }
  void on_provider_change(std::function<void(const std::string&)> changed) override {
    store_.on_provider_change(std::move(changed));
  }
  std::string fleet_id() const override { return store_.fleet_id(); }
  base::Result<std::string> fleet_key() override { return store_.fleet_key(); }

 private:
  template <typename Write>
  auto step(Write write) -> decltype(write()) {
    fate_.before();
    auto result = write();
    fate_.after();
    return result;
  }
  api::ResourceStore& store_;
  Fate& fate_;
};

}  // namespace controller::mortal
