#include "agentd/way/cluster_watch.h"

#include <algorithm>
#include <utility>

#include "libs/base/rest.h"

namespace agentd {

base::Result<ClusterWatch::Seen> ClusterWatch::read(const base::Json& json) {
  TRY(const api::Sandbox sandbox, api::sandbox_from_json(json));
  return Seen{{.key = sandbox.metadata.key,
               .uid = sandbox.metadata.uid,
               .resource_version = sandbox.metadata.resource_version},
              standing_of(sandbox)};
}

ClusterWatch::ClusterWatch(aio::Executor executor, Standings& standings, kube::Client& client,
                           const base::Clock& clock, const Settings& settings)
    : clock_(clock), post_(std::make_shared<StandingPost>(std::move(executor), standings)) {
  std::vector<std::string> spaces = settings.spaces;
  if (spaces.empty()) spaces.emplace_back();  // All.
  for (const std::string& space : spaces) {
    auto& informer =
        mirrors_
            .emplace_back(std::unique_ptr<Mirror>(new Mirror{
                {client, clock, kube::kSandboxes, {.space = space}, read, settings.reflector},
                Hearing(settings.patience)}))
            ->informer;
    informer.on_change([this, &informer](const api::Key& key) {
      const auto seen = informer.store().find(key);
      post_->tell(key, seen ? std::optional(seen->standing) : std::nullopt);
    });
    informer.start();
  }
  thread_ = std::jthread(
      [this, look = settings.look](const std::stop_token& stop) { listen(stop, look); });
}

// One that hears nothing makes all uncertain: which namespace a question is about is not asked.
void ClusterWatch::listen(const std::stop_token& stop, base::Milliseconds look) {
  std::optional<bool> told;
  while (!stop.stop_requested()) {
    bool heard = true;
    for (const auto& mirror : mirrors_)
      heard &= mirror->hearing.hears(mirror->informer.stats(), mirror->informer.is_synced(),
                                     clock_.now());
    if (std::exchange(told, heard) != heard) post_->set_heard(heard);
    base::rest(look, stop);
  }
}

}  // namespace agentd
