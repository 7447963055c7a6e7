#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "controller/attach/reviewer.h"
#include "libs/api/reasons.h"
#include "libs/api/resource_store.h"
#include "libs/metrics/definition.h"

namespace controller {

// What the service and its door count.
inline metrics::Table attach_metrics() {
  using metrics::Kind;
  return {{Kind::kCounter, "sandfleet_attach_requests_total", "By outcome.", {"outcome"}},
          {Kind::kHistogram, "sandfleet_attach_request_duration_seconds", "How long.", {}, {1}},
          {Kind::kGauge, "sandfleet_attach_certificate_expiry_timestamp_seconds", "When."}};
}

inline const std::string kFleetKey(32, 'k');

// One Sandbox, in memory; nothing may be written.
class OneSandbox final : public api::ResourceStore {
 public:
  OneSandbox() {
    sandbox.metadata.key = {"team-a", "box"};
    sandbox.metadata.uid = "u1";
    sandbox.status.sandbox_id = "i1";
    sandbox.status.epoch = 2;
    sandbox.status.incarnation = 3;
    sandbox.status.run = 4;
    api::set_condition(sandbox.status.conditions,
                       {std::string(api::condition::kReady), "True", "Ready", ""});
  }
  api::Sandbox sandbox;
  std::optional<WayIn> kept;

  std::shared_ptr<const api::Sandbox> find_sandbox(const api::Key& key) const override {
    return key == sandbox.metadata.key ? std::make_shared<api::Sandbox>(sandbox) : nullptr;
  }
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes() const override { return {}; }
  std::shared_ptr<const api::SandboxProvider> find_provider(const std::string&) const override {
    return nullptr;
  }
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers() const override { return {}; }
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key&) override { return no(); }
  base::Result<std::string> get_secret(const api::Key&, const std::string&) override {
    return no();
  }
  base::Result<api::Sandbox> update_metadata(const api::Key&, const api::Expected&,
                                             const std::map<std::string, std::string>&,
                                             const std::vector<std::string>&) override {
    return no();
  }
  base::Result<api::Sandbox> update_status(const api::Key&, const api::Expected&,
                                           const api::SandboxStatus&, Durability) override {
    return no();
  }
  base::Result<api::Sandbox> bind(const api::Key&, const std::string&, const api::Attempt&,
                                  const api::SandboxStatus&) override {
    return no();
  }
  base::Result<api::SandboxProvider> update_provider_status(const std::string&,
                                                            const api::Expected&,
                                                            const api::ProviderStatus&) override {
    return no();
  }
  base::Result<base::Done> hold_provider(const std::string&, const std::string&, bool) override {
    return no();
  }
  base::Result<base::Done> delete_sandbox(const api::Key&, const std::string&) override {
    return no();
  }
  void record_event(const api::Sandbox&, const api::Event&) override {}
  base::Result<base::Done> add_release(const Release&) override { return no(); }
  base::Result<std::vector<Release>> releases(const std::string&) override { return no(); }
  base::Result<base::Done> remove_release(const std::string&, const std::string&) override {
    return no();
  }
  base::Result<base::Done> keep_way_in(const api::Key&, const std::string&, const WayIn&) override {
    return no();
  }
  base::Result<std::optional<WayIn>> kept_way_in(const std::string&) override { return kept; }
  void on_sandbox_change(std::function<void(const api::Key&)>) override {}
  void on_provider_change(std::function<void(const std::string&)>) override {}
  std::string fleet_id() const override { return "fleet"; }
  base::Result<std::string> fleet_key() override { return kFleetKey; }

 private:
  static base::Error no() { return {base::ErrorCode::kUnavailable, "not asked for"}; }
};

struct Bearer final : Reviewer {
  std::atomic<bool> stopped = false;  // When it was last asked.

  base::Result<Caller> identify(const std::string& token, std::stop_token stop) override {
    stopped = stop.stop_requested();
    if (token == "away")
      return base::Error{base::ErrorCode::kUnavailable, "the API server is away"};
    if (token != "c4n4ry") return base::Error{base::ErrorCode::kDenied, "the token is not valid"};
    return Caller{.name = "harness"};
  }
  base::Result<base::Done> allow(const Caller&, const api::Key& key, std::stop_token) override {
    if (key.space != "team-a") return base::Error{base::ErrorCode::kDenied, "harness may not"};
    return base::Done{};
  }
};

}  // namespace controller
