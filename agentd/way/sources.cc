#include "agentd/way/sources.h"

#include <utility>

#include "agentd/way/attach_client.h"
#include "agentd/way/cluster_watch.h"
#include "agentd/way/folder_watch.h"
#include "libs/net/curl_transport.h"

namespace agentd {
namespace {

class FolderSources final : public Sources {
 public:
  FolderSources(const aio::Executor& executor, const std::filesystem::path& state,
                const std::filesystem::path& socket)
      : ways_(executor, std::make_unique<SocketLine>(executor, socket)),
        standings_(executor),
        watch_(executor, standings_, state) {}

  WaysIn& ways() override { return ways_; }
  Directory& directory() override { return standings_; }

 private:
  AttachClient ways_;
  Standings standings_;
  FolderWatch watch_;
};

class ClusterSources final : public Sources {
 public:
  ClusterSources(const aio::Executor& executor, std::unique_ptr<Line> line, kube::Config config,
                 const base::Clock& clock, std::vector<std::string> spaces)
      : ways_(executor, std::move(line)),
        standings_(executor),
        connection_(
            std::move(config), clock,
            {.transport =
                 [](const net::ConnectionOptions& how) { return net::curl_transport(how); }}),
        client_(connection_),
        watch_(executor, standings_, client_, clock, {.spaces = std::move(spaces)}) {}

  WaysIn& ways() override { return ways_; }
  Directory& directory() override { return standings_; }

 private:
  AttachClient ways_;
  Standings standings_;
  kube::Connection connection_;
  kube::Client client_;
  ClusterWatch watch_;
};

}  // namespace

base::Result<std::unique_ptr<Sources>> open_sources(const WayOptions& options,
                                                    aio::Executor executor, Names& names,
                                                    const base::Clock& clock) {
  if (options.has_folder()) {
    const std::filesystem::path socket = options.attach_socket.empty()
                                             ? manifests::attach_socket_in(options.state)
                                             : std::filesystem::path(options.attach_socket);
    return std::unique_ptr<Sources>(
        std::make_unique<FolderSources>(executor, options.state, socket));
  }
  TRY(Place place, place_of(options.attach_url));
  TRY(kube::Config config,
      kube::find_config({.kubeconfig = options.kubeconfig, .context = options.context},
                        kube::surroundings_of_process()));
  auto line = std::make_unique<SecureLine>(std::move(place), options.attach_ca, names);
  return std::unique_ptr<Sources>(std::make_unique<ClusterSources>(
      executor, std::move(line), std::move(config), clock, options.namespaces));
}

}  // namespace agentd
