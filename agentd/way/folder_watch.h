#pragma once

#include <filesystem>
#include <memory>

#include "agentd/way/standings.h"
#include "libs/manifests/state_follower.h"

namespace agentd {

// Tells the standings of the Sandboxes in a state folder, for as long as a controller is at work
// there. Made and ended on the loop.
class FolderWatch {
 public:
  // `standings` outlives it.
  FolderWatch(aio::Executor executor, Standings& standings, std::filesystem::path state);
  ~FolderWatch() { post_->close(); }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  const std::shared_ptr<StandingPost> post_;
  manifests::StateFollower follower_;
};

}  // namespace agentd
