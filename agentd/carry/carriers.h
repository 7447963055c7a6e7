#pragma once

#include <memory>

#include "agentd/carry/carrier.h"
#include "agentd/carry/roster.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"

namespace agentd {

// All that are carried.
class Carriers {
 public:
  // `parts` outlives them.
  Carriers(const CarrierParts& parts, RosterLimits limits);

  // Takes a harness's connection, until that is over. One beyond all bounds is hung up on.
  void carry(std::shared_ptr<aio::Stream> harness, Caller caller);
  // Tells each harness to come again, and waits until all have hung up, for so long at most.
  // Sessions go on in their executors.
  aio::Task<> drain(base::Milliseconds within);

  // Whatever they are at.
  aio::Task<> end();

  std::size_t size() const { return tasks_.size(); }

 private:
  aio::Task<bool> gone();

  const CarrierParts& parts_;
  const std::size_t max_;  // Those that are just told why they have to go are some more.
  aio::TaskGroup tasks_;
};

}  // namespace agentd
