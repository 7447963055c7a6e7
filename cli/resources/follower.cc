#include "cli/resources/follower.h"

namespace cli {

Follower::Follower(kube::Client& client, const base::Clock& clock, kube::Resource resource,
                   kube::Scope scope)
    : resource_(std::move(resource)),
      scope_(std::move(scope)),
      informer_(client, clock, resource_, scope_,
                [](const base::Json& json) -> base::Result<Object> {
                  return Object{kube::identity_of(json), json};
                },
                {.on_leg = [this](const kube::LegEnd& end) { take(end); }}) {
  informer_.on_change([this](const api::Key&) { tell(); });
  informer_.start();
}

void Follower::await_news(base::Milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return std::exchange(news_, false); });
}

std::optional<std::vector<base::Json>> Follower::objects() const {
  if (!informer_.is_synced()) return std::nullopt;
  std::vector<base::Json> all;
  for (const auto& each : informer_.store().all()) all.push_back(each->json);
  return all;
}

std::optional<Follower::Trouble> Follower::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_;
}

void Follower::take(const kube::LegEnd& end) {
  {
    std::lock_guard lock(mutex_);
    trouble_.reset();
    if (end.refusal) trouble_ = Trouble{*end.refusal, end.failures};
  }
  tell();
}

void Follower::tell() {
  {
    std::lock_guard lock(mutex_);
    news_ = true;
  }
  changed_.notify_all();
}

}  // namespace cli
