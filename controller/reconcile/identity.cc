#include "controller/reconcile/identity.h"

#include <algorithm>
#include <string>

namespace controller {
namespace {

// A marker is a file inside the sandbox, whose users may write any number into it. Up to here a
// count is believed, and whatever is on record can be counted on from.
constexpr std::int64_t kRunMax = 1'000'000'000;

bool is_ours(const api::Sandbox& wanted, const wire::Identity& marker) {
  return marker.uid == wanted.metadata.uid && marker.epoch == wanted.status.epoch &&
         marker.run <= std::max(kRunMax, wanted.status.run);
}

std::optional<wire::News> loss(const api::Sandbox& wanted, const wire::Identity& marker,
                               bool rolled_back) {
  const api::SandboxStatus& status = wanted.status;
  if (status.run == 0) return {};
  if (marker.run == 0)
    return wire::News{
        "lost",
        "the marker of earlier runs is missing: processes are gone, and whether files "
        "were rolled back is unknown"};
  if (!is_ours(wanted, marker))
    return wire::News{"restored",
                      "the sandbox was restored from the state of another one: processes are gone"};
  if (marker.run < status.run || rolled_back)
    return wire::News{"rolledBack", "the sandbox was rolled back to its state of run " +
                                        std::to_string(marker.run) +
                                        ": what later runs wrote is lost, and processes are gone"};
  return {};
}

}  // namespace

Judgement judge(const api::Sandbox& wanted, const wire::Identity& marker, bool new_run,
                bool rolled_back) {
  const api::SandboxStatus& status = wanted.status;
  Judgement judged{.incarnation = std::max<std::int64_t>(status.incarnation, 1),
                   .run = std::max(status.run, is_ours(wanted, marker) ? marker.run : 0)};
  if (new_run) ++judged.run;
  judged.news = loss(wanted, marker, rolled_back);
  if (judged.news) {
    ++judged.incarnation;
  } else if (status.run == 0 && status.epoch > 1) {
    judged.news = wire::News{"recreated",
                             "the sandbox is a new one in place of one that is gone: processes are "
                             "gone, and files are those of a new sandbox"};
  }
  return judged;
}

}  // namespace controller
