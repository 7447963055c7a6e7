#pragma once

#include <stop_token>

#include "controller/reconcile/memories.h"
#include "controller/reconcile/providers.h"
#include "controller/reconcile/way_in.h"
#include "libs/envd/sandbox.h"

namespace controller {

// Where the executors of bound Sandboxes are reached. Who acts for a Sandbox remembers the way from
// his own calls; any other replica looks at the provider and in the store. Nothing is changed at
// either. Safe to ask from many threads.
class Ways {
 public:
  Ways(api::ResourceStore& store, Providers& providers, const Memories& memories)
      : providers_(providers), memories_(memories), way_in_(store) {}

  base::Result<envd::Route> to(const api::Sandbox& sandbox, std::stop_token stop);

 private:
  Providers& providers_;
  const Memories& memories_;
  WayIn way_in_;
};

}  // namespace controller
