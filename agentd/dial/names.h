#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/shared.h"
#include "libs/base/result.h"

namespace agentd {

using Addresses = std::vector<std::string>;

// The first few addresses of a host, by the system's own means. Blocks, for as long as those take.
base::Result<Addresses> look_up(const std::string& host);

// Finds hosts. Those who ask for the same one at the same time share one look-up (aio::Shared), and
// each domain has threads of its own: a name server that does not answer holds up those who ask for
// names of its domain, and nobody for longer than he waits.
class Names {
 public:
  static constexpr std::size_t kLookUpsMax = 64;  // Under way at once, in one domain.
  static constexpr int kThreadsEach = 4;
  static constexpr std::size_t kDomainsMax = 16;  // In which names are looked up at once.
  using LookUp = std::function<base::Result<Addresses>(const std::string& host)>;

  // It outlives those who ask.
  explicit Names(aio::Executor executor, LookUp how = look_up);
  // Waits for the look-ups that run, and begins none of those that wait.
  ~Names();

  // kUnavailable: not known, not in time, or too many are looked up just now.
  aio::Task<base::Result<Addresses>> find(std::string host, base::Milliseconds within);

 private:
  struct Domain {
    Domain(const aio::Executor& executor, const LookUp& how);
    aio::Background background{kThreadsEach};
    aio::Shared<std::string, base::Result<Addresses>> under_way;
    // Those who ask in it hold this, and not the Domain: they are dropped as late as with the loop,
    // and its threads, which resume them there, are to end before.
    const std::shared_ptr<const void> wanted = std::make_shared<char>();
  };
  Domain* domain_of(const std::string& host);

  const aio::Executor executor_;
  const LookUp how_;
  std::atomic<bool> ending_ = false;
  std::map<std::string, Domain> domains_;
};

}  // namespace agentd
