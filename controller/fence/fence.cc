#include "controller/fence/fence.h"

#include <utility>

namespace controller {
namespace {

base::Error refusal(const std::string& provider) {
  return base::error(base::ErrorCode::kCancelled, "not sent: this process does not act for ",
                     provider, " now");
}

class Fenced final : public e2b::Cloud {
 public:
  using Done = std::function<void(base::Result<base::Done>)>;

  Fenced(std::shared_ptr<e2b::Cloud> cloud, const Mandate& mandate, std::string provider)
      : cloud_(std::move(cloud)), mandate_(mandate), provider_(std::move(provider)) {}

  base::Result<e2b::Handle, e2b::CreateFailure> create(const e2b::NewSandbox& wanted,
                                                       std::stop_token stop) override {
    if (!may_act()) return e2b::CreateFailure{refused(), e2b::CreateFailure::Kind::kNotSent};
    return cloud_->create(wanted, stop);
  }
  base::Result<e2b::Told<std::optional<e2b::SandboxInfo>>> get(const std::string& id,
                                                               std::stop_token stop) override {
    return cloud_->get(id, stop);
  }
  base::Result<std::optional<e2b::Handle>> handle(const std::string& id,
                                                  std::stop_token stop) override {
    return cloud_->handle(id, stop);
  }
  base::Result<e2b::Told<std::vector<e2b::SandboxInfo>>> list(const e2b::Filter& filter,
                                                              std::stop_token stop) override {
    return cloud_->list(filter, stop);
  }
  base::Result<e2b::KillAnswer> kill(const std::string& id, std::stop_token stop) override {
    if (!may_act()) return refused();
    return cloud_->kill(id, stop);
  }
  base::Result<e2b::PauseAnswer> pause(const std::string& id, std::stop_token stop) override {
    if (!may_act()) return refused();
    return cloud_->pause(id, stop);
  }
  base::Result<e2b::Connected> connect(const std::string& id, base::Seconds timeout,
                                       std::stop_token stop) override {
    if (!may_act()) return refused();
    return cloud_->connect(id, timeout, stop);
  }
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override {
    if (!may_act()) return refused();
    return cloud_->extend(id, timeout, stop);
  }
  void start_extend(const std::string& id, base::Seconds timeout, Done done) override {
    if (!may_act()) return cloud_->start_refresh(id, timeout, std::move(done));
    cloud_->start_extend(id, timeout, std::move(done));
  }
  void start_refresh(const std::string& id, base::Seconds timeout, Done done) override {
    cloud_->start_refresh(id, timeout, std::move(done));
  }

 private:
  bool may_act() const { return mandate_.may_act(provider_); }
  base::Error refused() const { return refusal(provider_); }

  const std::shared_ptr<e2b::Cloud> cloud_;
  const Mandate& mandate_;
  const std::string provider_;
};

}  // namespace

std::shared_ptr<e2b::Cloud> fenced(std::shared_ptr<e2b::Cloud> cloud, const Mandate& mandate,
                                   std::string provider) {
  return std::make_shared<Fenced>(std::move(cloud), mandate, std::move(provider));
}

base::Result<wire::Health> FencedReach::prepare(const Target& target, bool replace,
                                                const OnStep& on_step, std::stop_token stop) {
  if (!mandate_.may_act(target.provider_name)) return refusal(target.provider_name);
  return reach_.prepare(target, replace, on_step, std::move(stop));
}

base::Result<wire::Health> FencedReach::health(const Target& target, std::stop_token stop) {
  return reach_.health(target, std::move(stop));
}

base::Result<wire::Activity> FencedReach::activity(const Target& target, std::stop_token stop) {
  return reach_.activity(target, std::move(stop));
}

base::Result<wire::Health> FencedReach::quiesce(const Target& target, const wire::Quiesce& quiesce,
                                                std::stop_token stop) {
  if (!mandate_.may_act(target.provider_name)) return refusal(target.provider_name);
  return reach_.quiesce(target, quiesce, std::move(stop));
}

base::Result<wire::Health> FencedReach::resumed(const Target& target, const wire::Resumed& resumed,
                                                std::stop_token stop) {
  if (!mandate_.may_act(target.provider_name)) return refusal(target.provider_name);
  return reach_.resumed(target, resumed, std::move(stop));
}

}  // namespace controller
