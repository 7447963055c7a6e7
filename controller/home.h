#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/attach/entrance.h"
#include "controller/attach/service.h"
#include "controller/controller.h"
#include "controller/credentials.h"
#include "controller/options.h"
#include "controller/reconcile/mandate.h"
#include "libs/api/resource_store.h"

namespace controller {

// Where the resources live, and who we are there: what a folder and a cluster do each in its own
// way.
class Home {
 public:
  // What a home tells of, and with. All outlive it.
  struct Parts {
    const base::Clock& clock;
    metrics::Registry& registry;
    kube::Queue& queue;
    ProviderNews& provider_news;
    const Credentials& credentials;
    // The process must end before it is told to; end() says why.
    std::function<void()> over;
  };

  virtual ~Home() = default;
  virtual api::ResourceStore& store() = 0;
  virtual const Mandate& mandate() const = 0;
  virtual base::Result<std::string> api_key(const api::SandboxProvider& provider) = 0;
  // Where others ask for ways into sandboxes, still closed; null where nobody is to.
  virtual std::unique_ptr<Entrance> entrance(const std::string& fleet_key,
                                             AttachService::WayTo way_to,
                                             AttachService::WayFailed way_failed) = 0;
  // The first look at everything; from then on changes are told, and the mandate is sought.
  virtual base::Result<base::Done> start() = 0;
  virtual std::optional<base::Error> end() const = 0;
  // Why what happens cannot be recorded now; empty when it can.
  virtual std::string trouble() const { return {}; }
  // Nothing is written from here on, and what was is kept for good.
  virtual base::Result<base::Done> close() = 0;
};

// In the folder --manifests, or else in a cluster.
base::Result<std::unique_ptr<Home>> open_home(const Options& options, const Home::Parts& parts);

base::Result<std::unique_ptr<Home>> open_folder(const Options& options, const Home::Parts& parts);
base::Result<std::unique_ptr<Home>> open_cluster(const Options& options, const Home::Parts& parts);

}  // namespace controller
