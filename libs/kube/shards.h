#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kube/lease.h"

// The work divided by provider among several controllers: who holds the lease "i-of-N" looks after
// the providers of shard i. All agree on N: nobody acts while a lease of another N is alive.
namespace kube {

struct Shard {
  int index = 0, count = 1;
  bool operator==(const Shard&) const = default;
};

// "sandfleet-0-of-2"
std::string lease_name(std::string_view prefix, const Shard& shard);
std::optional<Shard> shard_of_lease(std::string_view prefix, std::string_view name);
// Which of `count` shards looks after that provider; the same on every machine.
int shard_of(std::string_view provider, int count);

// Watches for leases of another count. Safe to share between threads.
class OtherCounts {
 public:
  OtherCounts(Client& client, std::string space, std::string prefix, int count,
              const base::Clock& clock);
  // Whether none is alive, asked of the server now: neither held nor held so lately that its holder
  // may not know yet that it lost it.
  Answer<bool> are_gone(std::stop_token stop);

 private:
  struct Seen {
    std::string resource_version;
    base::Moment at;
  };

  bool are_over(const std::map<std::string, LeaseRecord>& others);

  Client& client_;
  const std::string space_, prefix_;
  const int count_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Seen> seen_;
};

}  // namespace kube
