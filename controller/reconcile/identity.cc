#include "controller/reconcile/identity.h"

#include <algorithm>

namespace controller {
namespace {

// A marker is a file inside the sandbox, whose users may write any number into it. Up to here a
// count is believed, and whatever is on record can be counted on from.
constexpr std::int64_t kRunMax = 1'000'000'000;

bool is_ours(const api::Sandbox& wanted, const wire::Identity& marker) {
  return marker.uid == wanted.metadata.uid && marker.epoch == wanted.status.epoch &&
         marker.run <= std::max(kRunMax, wanted.status.run);
}

std::string loss(const api::Sandbox& wanted, const wire::Identity& marker, bool rolled_back) {
  const api::SandboxStatus& status = wanted.status;
  if (status.run == 0) return {};
  if (marker.run == 0)
    return "the marker of earlier runs is missing: processes are gone, and whether files were "
           "rolled back is unknown";
  if (!is_ours(wanted, marker))
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
  Judgement judged{.incarnation = std::max<std::int64_t>(status.incarnation, 1),
                   .run = std::max(status.run, is_ours(wanted, marker) ? marker.run : 0)};
  if (new_run) ++judged.run;
  judged.notice = loss(wanted, marker, rolled_back);
  if (!judged.notice.empty()) ++judged.incarnation;
  return judged;
}

}  // namespace controller
