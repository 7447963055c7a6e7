#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/prepare/prepare.h"
#include "controller/reconcile/reach.h"
#include "libs/base/clock.h"
#include "libs/net/transport.h"
#include "libs/wire/issuing_time.h"

namespace controller {

// Where the executor of one sandbox is reached, by whoever holds the sandbox's tokens.
envd::Route route_to_executor(const api::ProviderSpec& provider, const e2b::Handle& handle);

// Reaches into sandboxes through the provider's data plane.
class SandboxReach final : public Reach {
 public:
  // The HTTP client for one provider's data plane, held during each call. The files outlive it:
  // they are large, and do for all.
  using TransportOf = std::function<std::shared_ptr<net::Transport>(const api::ProviderSpec&)>;
  SandboxReach(TransportOf transport_of, const base::Clock& clock, std::string fleet_key,
               const ExecutorFiles& executors);
  base::Result<wire::Health> prepare(const Target& target, bool replace, const OnStep& on_step,
                                     std::stop_token stop) override;
  base::Result<wire::Health> health(const Target& target, std::stop_token stop) override;
  base::Result<wire::Activity> activity(const Target& target, std::stop_token stop) override;
  base::Result<wire::Health> quiesce(const Target& target, const wire::Quiesce& quiesce,
                                     std::stop_token stop) override;
  base::Result<wire::Health> resumed(const Target& target, const wire::Resumed& resumed,
                                     std::stop_token stop) override;

 private:
  HttpExecutorDoor door_of(net::Transport& transport, const Target& target) const;

  const TransportOf transport_of_;
  const base::Clock& clock_;
  const wire::IssuingTime issuing_;
  const std::string fleet_key_;
  const ExecutorFiles& executors_;
};

}  // namespace controller
