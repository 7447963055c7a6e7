#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/tenure.h"
#include "controller/reconcile/mandate.h"
#include "libs/kube/elector.h"
#include "libs/kube/shards.h"

namespace controller {

struct ShardLeasesSettings {
  std::string space, prefix;  // Where the Leases are, and what their names begin with.
  std::string identity;       // Of this process alone.
  int shards = 1;
  base::Seconds lease{15};
};

// The mandate of one of several controllers in a cluster: for each shard of the providers one
// Lease, held by one of them. Who holds some lets others have the rest: it claims one more only
// when that has been free for a while.
class ShardLeases final : public Mandate {
 public:
  // From threads of their own; must be short.
  struct News {
    std::function<void(int shard)> gained = [](int) {};
    // It is over with all of them: another acts for a shard of ours. Once.
    std::function<void()> over = [] {};
  };
  // All outlive it. The client's timeout is well below the leases' duration.
  ShardLeases(kube::Client& client, const base::Clock& clock, ShardLeasesSettings settings);
  // Gives back what it holds.
  ~ShardLeases() override;

  // Once.
  void start(News news);

  bool may_act(const std::string& provider) const override;
  base::Moment since(const std::string& provider) const override;
  bool is_of(int shard, const std::string& provider) const {
    return kube::shard_of(provider, settings_.shards) == shard;
  }

  // Why it is over; empty while it is not.
  std::optional<base::Error> end() const;
  // Which leases there are, and whether we act by them: for leader_election_master_status.
  std::map<std::string, bool> held() const;
  // How many renewals of each were not plain, see Elector: for leader_election_slowpath_total.
  std::map<std::string, int> slow_paths() const;

 private:
  struct Shard;
  const Shard& shard_of(const std::string& provider) const;
  void turned(Shard& shard);
  bool may_claim(Shard& shard);

  const base::Clock& clock_;
  const ShardLeasesSettings settings_;
  kube::OtherCounts others_;
  News news_;
  mutable std::mutex mutex_;
  bool ending_ = false;
  std::optional<base::Error> end_;
  std::atomic<bool> over_ = false;
  std::vector<std::unique_ptr<Shard>> shards_;  // Last: their threads use all of the above.
};

}  // namespace controller
