#include "agentd/carry/roster.h"

#include <resolv.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agentd/dial/names.h"

namespace agentd {
namespace {

// Than links: each look-up of a name may have a socket to each of its name servers
// (resolv.conf(5)).
constexpr std::size_t kForLookUps =
    Names::kDomainsMax * static_cast<std::size_t>(Names::kThreadsEach) * MAXNS;
constexpr std::size_t kDescriptorsForOthers = kForLookUps + 128;

}  // namespace

RosterLimits fitting(RosterLimits wanted, std::size_t descriptors) {
  const std::size_t for_links = descriptors - std::min(descriptors / 2, kDescriptorsForOthers);
  wanted.greeting_max = std::clamp<std::size_t>(for_links / 8, 1, wanted.greeting_max);
  wanted.parting_max = std::clamp<std::size_t>(for_links / 16, 1, wanted.parting_max);
  // Of each kind as many may have been told to go as are listed. One that is listed as parting has
  // its executor, too.
  const std::size_t for_others =
      std::min(2 * wanted.greeting_max + 3 * wanted.parting_max, for_links);
  const std::size_t room = std::max<std::size_t>((for_links - for_others) / 2, 1);
  wanted.links_max = std::min(wanted.links_max, room);
  return wanted;
}

void Roster::join(Member& member) {
  greeting_.push_back(&member);
  if (greeting_.size() <= limits_.greeting_max) return;
  Member& oldest = *greeting_.front();
  greeting_.pop_front();
  oldest.leave({wire::CloseReason::kBusy, "others wait that may have something to say"});
}

bool Roster::enter(Member& member, const wire::SandboxName& sandbox) {
  const std::string name = to_text(sandbox);
  greeting_.remove(&member);
  if (closed_) return false;
  if (links_ >= limits_.links_max) return false;
  std::size_t& links = by_sandbox_[name];
  if (links >= limits_.links_each_max) return false;
  ++links;
  ++links_;
  entered_[&member].sandbox = name;
  return true;
}

void Roster::take(Member& member, const std::string& session) {
  give_up_session(member);
  Entry& entry = entered_.at(&member);
  Member* const before = std::exchange(by_session_[{entry.sandbox, session}], &member);
  entry.session = session;
  if (!before) return;
  entered_.at(before).session.clear();
  before->leave({wire::CloseReason::kReplaced, "a newer link has this session"});
}

void Roster::give_up_session(Member& member) {
  Entry& entry = entered_.at(&member);
  if (!entry.session.empty()) by_session_.erase({entry.sandbox, std::exchange(entry.session, {})});
}

void Roster::close(const std::function<wire::Close()>& word) {
  closed_ = true;
  std::vector<Member*> all(greeting_.begin(), greeting_.end());
  for (const auto& [member, entry] : entered_) all.push_back(member);
  for (Member* member : all) member->leave(word());
}

void Roster::part(Member& member) {
  if (!entered_.at(&member).has_place) return;
  give_up_place(member);
  parting_.push_back(&member);
  if (parting_.size() <= limits_.parting_max) return;
  Member& oldest = *parting_.front();
  parting_.pop_front();
  oldest.leave({wire::CloseReason::kBusy, "others have parted since"});
}

void Roster::give_up_place(Member& member) {
  Entry& entry = entered_.at(&member);
  if (!std::exchange(entry.has_place, false)) return;
  const auto links = by_sandbox_.find(entry.sandbox);
  if (--links->second == 0) by_sandbox_.erase(links);
  --links_;
}

void Roster::remove(Member& member) {
  greeting_.remove(&member);
  parting_.remove(&member);
  const auto found = entered_.find(&member);
  if (found == entered_.end()) return;
  give_up_session(member);
  give_up_place(member);
  entered_.erase(found);
}

}  // namespace agentd
