#include "agentd/way/folder_watch.h"

#include <utility>

namespace agentd {
namespace {

void hand_on(StandingPost& post, const manifests::StateFollower::News& news) {
  for (const auto& [key, sandbox] : news.changed)
    post.tell(key, sandbox ? std::optional(standing_of(*sandbox)) : std::nullopt);
  post.set_heard(news.held);
}

}  // namespace

FolderWatch::FolderWatch(aio::Executor executor, Standings& standings, std::filesystem::path state)
    : post_(std::make_shared<StandingPost>(std::move(executor), standings)),
      follower_(std::move(state), [post = post_](const manifests::StateFollower::News& news) {
        hand_on(*post, news);
      }) {}

}  // namespace agentd
