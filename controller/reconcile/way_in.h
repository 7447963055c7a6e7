#pragma once

#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "libs/api/resource_store.h"
#include "libs/e2b/cloud.h"

namespace controller {

// The ways into E2B sandboxes, tokens included, across restarts: what a provider's GET does not
// give back is kept in the store. Safe to use from many threads.
class WayIn {
 public:
  explicit WayIn(api::ResourceStore& store) : store_(store) {}

  // After a create or a connect gave `handle`. Asks a provider once whether its GET gives the same
  // back; `provider` names it.
  void keep(const std::string& provider, const api::Sandbox& owner, const e2b::Handle& handle,
            e2b::Cloud& cloud, std::stop_token stop);

  // By GET, with what it lacks from the store; changes nothing, so anybody may, at any time. A
  // token that nobody has told is missing: a sandbox may need none.
  base::Result<e2b::Handle> look(const api::Sandbox& owner, const std::string& id,
                                 e2b::Cloud& cloud, std::stop_token stop);

  // The same; where there is no token, or with `anew`, by a connect, which tells all of them and
  // only ever lengthens the lease.
  base::Result<e2b::Handle> find(const std::string& provider, const api::Sandbox& owner,
                                 const std::string& id, bool anew, e2b::Cloud& cloud,
                                 std::stop_token stop);

 private:
  bool told_once(const std::string& provider, const e2b::Handle& handle, e2b::Cloud& cloud,
                 std::stop_token stop);

  api::ResourceStore& store_;
  std::mutex mutex_;
  std::map<std::string, bool> told_once_;  // By provider; absent while nobody has asked.
};

}  // namespace controller
