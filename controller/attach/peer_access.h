#pragma once

#include "controller/attach/access.h"

namespace controller {

// Who may ask over the socket in the file system: root, whoever we run as, and who is in `group`,
// which its file is open to.
bool may_ask(const base::Peer& peer, uid_t ours, std::optional<gid_t> group);

// Who gets in by being let in at that socket, to every Sandbox alike, and known by the user's
// number: "uid:1000". A token is not asked for.
class PeerAccess final : public Access {
 public:
  explicit PeerAccess(std::optional<gid_t> group) : group_(group) {}
  base::Result<std::string> admit(const Asker& asker, const api::Key& sandbox,
                                  std::stop_token stop) override;

 private:
  const std::optional<gid_t> group_;
};

}  // namespace controller
