#pragma once

#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "controller/reconcile/providers.h"
#include "controller/sweep/plan.h"
#include "libs/api/resource_store.h"

namespace controller {

struct Swept {
  std::size_t orphans = 0, surplus = 0;  // Found, past their grace.
  std::size_t killed = 0;
};

// Kills what our fleet left behind at a provider: list first, then resources, then an uncached
// look at the owner before each kill.
class Sweeper {
 public:
  Sweeper(api::ResourceStore& store, Providers& providers, const base::Clock& clock,
          base::Milliseconds grace);
  base::Result<Swept> sweep(const std::string& provider, std::stop_token stop);
  // Forgets what was seen at all other providers, which are gone.
  void keep_only(const std::set<std::string>& providers);

 private:
  // What earlier sweeps of a provider saw, by the id of the E2B sandbox; of those only that are
  // still listed or still released.
  struct Seen {
    std::map<std::string, base::Moment> first_listed;
    std::map<std::string, int> release_misses;
  };
  base::Result<bool> still_condemned(const e2b::SandboxInfo& sandbox);
  void prune_releases(const std::string& provider, const std::set<std::string>& listed,
                      e2b::Cloud& cloud, std::stop_token stop);

  api::ResourceStore& store_;
  Providers& providers_;
  const base::Clock& clock_;
  const base::Milliseconds grace_;
  std::mutex mutex_;                  // One sweep at a time.
  std::map<std::string, Seen> seen_;  // By provider.
};

}  // namespace controller
