#include "agentd/way/standings.h"

#include <utility>

#include "libs/aio/post.h"
#include "libs/api/reasons.h"

namespace agentd {
namespace {

bool holds(const api::Sandbox& sandbox, std::string_view condition) {
  const api::Condition* found = api::find_condition(sandbox.status, condition);
  return found && found->status == "True";
}

}  // namespace

Standing standing_of(const api::Sandbox& sandbox) {
  const bool ended = sandbox.deleting() || sandbox.status.ended_by != api::EndedBy::kNobody ||
                     sandbox.spec.desired_state == api::DesiredState::kTerminated;
  if (ended) return Standing::kEnded;
  const bool paused = sandbox.status.paused_by != api::PausedBy::kNobody ||
                      sandbox.spec.desired_state == api::DesiredState::kPaused ||
                      holds(sandbox, api::condition::kPaused);
  if (paused) return Standing::kPaused;
  const bool runs = holds(sandbox, api::condition::kReady) && !sandbox.status.sandbox_id.empty() &&
                    sandbox.status.run > 0;
  return runs ? Standing::kRunning : Standing::kUnknown;
}

Standing Standings::standing(const wire::SandboxName& sandbox) const {
  const api::Key key{sandbox.space, sandbox.name};
  if (!heard_) return Standing::kUnknown;
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return gone_.contains(key) ? Standing::kEnded : Standing::kUnknown;
}

void Standings::take(const StandingNews& news) {
  for (const auto& [key, standing] : news) {
    if (standing) {
      unearth(key);
      known_.insert_or_assign(key, *standing);
    } else if (known_.erase(key) > 0) {
      bury(key);
    }
  }
  if (!news.empty()) moved_.notify_all();
}

void Standings::bury(const api::Key& key) {
  gone_.emplace(key, ++turns_);
  gone_by_turn_.emplace(turns_, key);
  if (gone_.size() <= ended_max_) return;
  gone_.erase(gone_by_turn_.begin()->second);
  gone_by_turn_.erase(gone_by_turn_.begin());
}

void Standings::unearth(const api::Key& key) {
  const auto found = gone_.find(key);
  if (found == gone_.end()) return;
  gone_by_turn_.erase(found->second);
  gone_.erase(found);
}

void Standings::set_heard(bool heard) {
  if (std::exchange(heard_, heard) != heard) moved_.notify_all();
}

void StandingPost::tell(const api::Key& sandbox, std::optional<Standing> standing) {
  std::lock_guard lock(mutex_);
  news_.insert_or_assign(sandbox, standing);
  send();
}

void StandingPost::set_heard(bool heard) {
  std::lock_guard lock(mutex_);
  heard_ = heard;
  send();
}

void StandingPost::send() {
  if (std::exchange(on_its_way_, true)) return;
  aio::post(executor_, [self = shared_from_this()] { self->deliver(); });
}

void StandingPost::deliver() {
  StandingNews news;
  std::optional<bool> heard;
  {
    std::lock_guard lock(mutex_);
    news = std::exchange(news_, {});
    heard = std::exchange(heard_, std::nullopt);
    on_its_way_ = false;
  }
  if (!standings_) return;
  standings_->take(news);
  if (heard) standings_->set_heard(*heard);
}

}  // namespace agentd
