#include "controller/reconcile/identity.h"

#include <algorithm>

namespace controller {
namespace {

std::string loss(const api::Sandbox& wanted, const wire::Identity& marker, bool rolled_back) {
  const api::SandboxStatus& status = wanted.status;
  if (status.run == 0) return {};
  if (marker.run == 0)
    return "the marker of earlier runs is missing: processes are gone, and whether files were "
           "rolled back is unknown";
  if (marker.uid != wanted.metadata.uid || marker.epoch != status.epoch)
    return "the sandbox was restored from the state of another one: processes are gone";
  if (marker.run < status.run || rolled_back)
    return "the sandbox was rolled back to its state of run " + std::to_string(marker.run) +
           ": what later runs wrote is lost, and processes are gone";
  return {};
}

}  // namespace

Judgement judge(const api::Sandbox& wanted, const wire::Identity& marker, bool new_run,
                bool rolled_back) {
  const api::SandboxStatus& status = wanted.status;
  const bool ours = marker.uid == wanted.metadata.uid && marker.epoch == status.epoch;
  Judgement judged{.incarnation = std::max<std::int64_t>(status.incarnation, 1),
                   .run = std::max(status.run, ours ? marker.run : 0)};
  if (new_run) ++judged.run;
  judged.notice = loss(wanted, marker, rolled_back);
  if (!judged.notice.empty()) ++judged.incarnation;
  return judged;
}

}  // namespace controller
