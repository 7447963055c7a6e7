#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/reconcile/mandate.h"
#include "controller/reconcile/reach.h"
#include "libs/e2b/cloud.h"

// Stands between us and whatever we may change only while our mandate lasts. It is asked last, when
// all waiting is over; a call that it refuses was not sent and fails as kCancelled.
namespace controller {

// Looks pass always. A heartbeat does too, for it keeps what we last knew to be wanted; without the
// mandate only by the call that cannot shorten a lease that its next holder has made longer.
std::shared_ptr<e2b::Cloud> fenced(std::shared_ptr<e2b::Cloud> cloud, const Mandate& mandate,
                                   std::string provider);

// The same for what is done inside sandboxes; there, too, a look passes always.
class FencedReach final : public Reach {
 public:
  FencedReach(Reach& reach, const Mandate& mandate) : reach_(reach), mandate_(mandate) {}
  base::Result<wire::Health> prepare(const Target& target, bool replace, const OnStep& on_step,
                                     std::stop_token stop) override;
  base::Result<wire::Health> health(const Target& target, std::stop_token stop) override;
  base::Result<wire::Activity> activity(const Target& target, std::stop_token stop) override;
  base::Result<wire::Health> quiesce(const Target& target, const wire::Quiesce& quiesce,
                                     std::stop_token stop) override;
  base::Result<wire::Health> resumed(const Target& target, const wire::Resumed& resumed,
                                     std::stop_token stop) override;

 private:
  Reach& reach_;
  const Mandate& mandate_;
};

}  // namespace controller
