#include "agentd/carry/carriers.h"

#include <utility>

#include "libs/base/log.h"

namespace agentd {
namespace {

aio::Task<> carry_one(const CarrierParts& parts, std::shared_ptr<aio::Stream> harness,
                      Caller caller) {
  Carrier carrier(parts, std::move(harness), std::move(caller));
  co_await carrier.run();
}

}  // namespace

Carriers::Carriers(const CarrierParts& parts, RosterLimits limits)
    : parts_(parts),
      max_(limits.links_max + 2 * (limits.greeting_max + limits.parting_max)),
      tasks_(parts.executor) {}

void Carriers::carry(std::shared_ptr<aio::Stream> harness, Caller caller) {
  parts_.counts.connected();
  if (tasks_.size() >= max_) return parts_.counts.told("none");
  tasks_.spawn(carry_one(parts_, std::move(harness), std::move(caller)));
}

aio::Task<> Carriers::drain(base::Milliseconds within) {
  parts_.roster.close([this] {
    // Not all of them are to come back at once.
    const auto after = 200 + static_cast<std::int64_t>(parts_.jitter() * 1'800);
    return wire::Close{wire::CloseReason::kShutdown, "agentd ends", after};
  });
  if (!co_await aio::within(gone(), within))
    base::log::warn("some harnesses did not hang up", {{"links", tasks_.size()}});
}

aio::Task<> Carriers::end() {
  tasks_.cancel();
  co_await tasks_.wait();
}

aio::Task<bool> Carriers::gone() {
  co_await tasks_.wait();
  co_return true;
}

}  // namespace agentd
