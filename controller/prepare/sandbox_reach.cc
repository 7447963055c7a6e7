#include "controller/prepare/sandbox_reach.h"

#include <thread>
#include <utility>

#include "libs/envd/client.h"
#include "libs/wire/token.h"

namespace controller {
namespace {

constexpr base::Seconds kTokenLife{600};

envd::Routing routing_of(api::Routing routing) {
  switch (routing) {
    case api::Routing::kSubdomain:
      return envd::Routing::kSubdomain;
    case api::Routing::kHeader:
      return envd::Routing::kHeader;
    case api::Routing::kPathPrefix:
      return envd::Routing::kPathPrefix;
  }
  return envd::Routing::kSubdomain;
}

// What to check when the way that a provider's spec describes leads to no sandbox.
std::string advice_on(const api::ProviderSpec& provider) {
  return "the SandboxProvider says spec.data.url " + net::describe_url(provider.data_url) +
         " and spec.data.routing " + std::string(api::to_word(provider.routing)) + ": check both";
}

envd::Route route_of(const api::ProviderSpec& provider, const e2b::Handle& handle, int port) {
  const envd::DataPlane plane{provider.data_url, routing_of(provider.routing)};
  return envd::route_to(envd::in_domain(plane, handle.domain), handle.id, port,
                        port == envd::kEnvdPort ? handle.envd_access_token : std::nullopt,
                        handle.traffic_access_token);
}

}  // namespace

envd::Route route_to_executor(const api::ProviderSpec& provider, const e2b::Handle& handle) {
  return route_of(provider, handle, wire::kExecutorPort);
}

SandboxReach::SandboxReach(TransportOf transport_of, const base::Clock& clock,
                           std::string fleet_key, const ExecutorFiles& executors)
    : transport_of_(std::move(transport_of)),
      clock_(clock),
      issuing_(clock),
      fleet_key_(std::move(fleet_key)),
      executors_(executors) {}

HttpExecutorDoor SandboxReach::door_of(net::Transport& transport, const Target& target) const {
  const base::WallTime now = issuing_.now();
  const wire::Claims claims{.kind = wire::TokenKind::kAdmin,
                            .uid = target.uid,
                            .epoch = target.epoch,
                            .subject = "sandfleet-controller",
                            .issued = now,
                            .expires = now + kTokenLife};
  const std::string key =
      wire::derive_key(fleet_key_, wire::TokenKind::kAdmin, target.uid, target.epoch);
  return {transport, route_to_executor(target.provider, target.handle), key,
          wire::sign(claims, key)};
}

base::Result<wire::Health> SandboxReach::prepare(const Target& target, bool replace,
                                                 const OnStep& on_step, std::stop_token stop) {
  const auto transport = transport_of_(target.provider);
  envd::Client sandbox(
      *transport, clock_, route_of(target.provider, target.handle, envd::kEnvdPort),
      {.envd_version = target.handle.envd_version, .advice = advice_on(target.provider)});
  HttpExecutorDoor door = door_of(*transport, target);
  const auto key_of = [&](wire::TokenKind kind) {
    return wire::derive_key(fleet_key_, kind, target.uid, target.epoch);
  };
  const wire::StartSecrets secrets{target.uid, target.epoch, key_of(wire::TokenKind::kAttach),
                                   key_of(wire::TokenKind::kAdmin)};
  const PrepareOptions options{.clock = clock_,
                               .rest = [](auto time) { std::this_thread::sleep_for(time); },
                               .expected = target.was_prepared,
                               .on_step = on_step};
  return bring_to_life(sandbox, door, executors_, secrets, replace, options, stop);
}

base::Result<wire::Health> SandboxReach::health(const Target& target, std::stop_token stop) {
  const auto transport = transport_of_(target.provider);
  return door_of(*transport, target).health(stop);
}

base::Result<wire::Activity> SandboxReach::activity(const Target& target, std::stop_token stop) {
  const auto transport = transport_of_(target.provider);
  return door_of(*transport, target).activity(stop);
}

base::Result<wire::Health> SandboxReach::quiesce(const Target& target, const wire::Quiesce& quiesce,
                                                 std::stop_token stop) {
  const auto transport = transport_of_(target.provider);
  return door_of(*transport, target).quiesce(quiesce, stop);
}

base::Result<wire::Health> SandboxReach::resumed(const Target& target, const wire::Resumed& resumed,
                                                 std::stop_token stop) {
  const auto transport = transport_of_(target.provider);
  return door_of(*transport, target).resumed(resumed, stop);
}

}  // namespace controller
