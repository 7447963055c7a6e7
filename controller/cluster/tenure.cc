#include "controller/cluster/tenure.h"

namespace controller {
namespace {

std::optional<base::Error> end_of(const Tenure& before, const LeaseView& lease,
                                  const std::string& identity, base::Moment now) {
  using base::ErrorCode;
  if (lease.tenures == 0) return std::nullopt;  // It has not begun.
  if (lease.tenures > 1)
    return base::error(ErrorCode::kConflict, "the lease ", lease.name,
                       " was another's for a while; beginning anew");
  if (lease.may_act) return std::nullopt;
  if (!lease.holder.empty() && lease.holder != identity)
    return base::error(ErrorCode::kConflict, lease.holder, " holds the lease ", lease.name,
                       " now; beginning anew");
  if (now - before.acted_at > kUnledMax)
    return base::error(ErrorCode::kUnavailable, "the lease ", lease.name,
                       " could not be renewed for too long");
  return std::nullopt;
}

}  // namespace

TenureNews after_turn(const Tenure& before, const LeaseView& lease, const std::string& identity,
                      base::Moment now) {
  TenureNews news{.tenure = before, .over = end_of(before, lease, identity, now)};
  const bool acts = lease.may_act && !news.over;
  news.gained = acts && lease.spells != before.spells;
  news.tenure.acting = acts;
  if (!acts) return news;
  news.tenure.spells = lease.spells;
  news.tenure.acted_at = now;
  return news;
}

}  // namespace controller
