#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agentd/way/hearing.h"
#include "agentd/way/standings.h"
#include "libs/kube/informer.h"

namespace agentd {

// Tells the standings of the Sandboxes in a cluster, from mirrors that keep no more of them. It
// takes the right to list and watch them, and lives on without. Made and ended on the loop.
class ClusterWatch {
 public:
  struct Settings {
    std::vector<std::string> spaces = {};  // Whose Sandboxes; none: those of all namespaces.
    base::Milliseconds look{1'000};        // Whether the mirrors are still told.
    base::Milliseconds patience{90'000};   // How long they may be told nothing, after a cut.
    kube::ReflectorSettings reflector = {};
  };
  // All of them outlive it.
  ClusterWatch(aio::Executor executor, Standings& standings, kube::Client& client,
               const base::Clock& clock, const Settings& settings);
  ~ClusterWatch() { post_->close(); }
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

 private:
  struct Seen {
    api::Metadata metadata;  // Its names and version alone.
    Standing standing = Standing::kUnknown;
  };
  struct Mirror {
    kube::Informer<Seen> informer;
    Hearing hearing;
  };

  static base::Result<Seen> read(const base::Json& json);
  void listen(const std::stop_token& stop, base::Milliseconds look);

  const base::Clock& clock_;
  const std::shared_ptr<StandingPost> post_;
  std::vector<std::unique_ptr<Mirror>> mirrors_;
  std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace agentd
