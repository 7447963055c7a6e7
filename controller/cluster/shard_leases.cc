#include "controller/cluster/shard_leases.h"

#include <algorithm>

#include "libs/base/log.h"

namespace controller {
namespace {

// Others have this long to take what is free, for each lease that we hold already.
base::Milliseconds courtesy_of(base::Milliseconds lease) { return lease / 3; }

kube::ElectionSettings election(const ShardLeasesSettings& settings) {
  return {.identity = settings.identity,
          .lease = settings.lease,
          .renew_deadline = base::Milliseconds(settings.lease) * 2 / 3,
          .retry = base::Milliseconds(settings.lease) * 2 / 15};
}

}  // namespace

struct ShardLeases::Shard {
  Shard(ShardLeases& owner, kube::Client& client, int index)
      : index(index),
        name(kube::lease_name(owner.settings_.prefix, {index, owner.settings_.shards})),
        object(client, {owner.settings_.space, name}),
        elector(object, owner.clock_, election(owner.settings_),
                [&owner, this](std::stop_token stop) -> kube::Answer<bool> {
                  if (!owner.may_claim(*this)) return false;
                  return owner.others_.are_gone(std::move(stop));
                }) {}

  bool may_act() const {
    // In this order: see Elector::tenures.
    return elector.may_act() && elector.tenures() == 1;
  }

  const int index;
  const std::string name;
  kube::LeaseObject object;
  Tenure tenure;  // Of the elector's thread.
  // Under the owner's lock.
  bool claiming = false;
  std::optional<base::Moment> free_since, asked_at;
  kube::Elector elector;
};

ShardLeases::ShardLeases(kube::Client& client, const base::Clock& clock,
                         ShardLeasesSettings settings)
    : clock_(clock),
      settings_(std::move(settings)),
      others_(client, settings_.space, settings_.prefix, settings_.shards, clock) {
  for (int index = 0; index < settings_.shards; ++index)
    shards_.push_back(std::make_unique<Shard>(*this, client, index));
}

// From here on no elector looks at the others, which end one after another.
ShardLeases::~ShardLeases() {
  std::lock_guard lock(mutex_);
  ending_ = true;
}

void ShardLeases::start(News news) {
  news_ = std::move(news);
  for (const auto& shard : shards_)
    shard->elector.start([this, shard = shard.get()] { turned(*shard); });
}

const ShardLeases::Shard& ShardLeases::shard_of(const std::string& provider) const {
  return *shards_[static_cast<std::size_t>(kube::shard_of(provider, settings_.shards))];
}

bool ShardLeases::may_act(const std::string& provider) const {
  return shard_of(provider).may_act() && !over_;
}

base::Moment ShardLeases::since(const std::string& provider) const {
  return shard_of(provider).elector.since();
}

std::optional<base::Error> ShardLeases::end() const {
  std::lock_guard lock(mutex_);
  return end_;
}

std::map<std::string, bool> ShardLeases::held() const {
  std::map<std::string, bool> held;
  for (const auto& shard : shards_) held[shard->name] = shard->may_act() && !over_;
  return held;
}

std::map<std::string, int> ShardLeases::slow_paths() const {
  std::map<std::string, int> counted;
  for (const auto& shard : shards_) counted[shard->name] = shard->elector.slow_paths();
  return counted;
}

// Asked before a lease is claimed and once more before it is acted upon. One that is being claimed
// counts as held, or all of them would be claimed at once.
bool ShardLeases::may_claim(Shard& shard) {
  std::lock_guard lock(mutex_);
  if (ending_) return false;
  const base::Moment now = clock_.now();
  // What was not asked for lately was not free all the time.
  if (!shard.asked_at || now - *shard.asked_at > settings_.lease) shard.free_since = now;
  shard.asked_at = now;
  const auto others = std::ranges::count_if(shards_, [&](const auto& other) {
    return other.get() != &shard && (other->claiming || other->may_act());
  });
  shard.claiming = now - *shard.free_since >= courtesy_of(settings_.lease) * others;
  return shard.claiming;
}

void ShardLeases::turned(Shard& shard) {
  {
    std::lock_guard lock(mutex_);
    shard.claiming = false;
  }
  const bool acted = shard.tenure.acting;
  // In this order: see Elector::tenures.
  LeaseView lease{.name = shard.name, .may_act = shard.elector.may_act()};
  lease.tenures = shard.elector.tenures();
  lease.spells = shard.elector.spells();
  lease.holder = shard.elector.holder();
  const TenureNews news = after_turn(shard.tenure, lease, settings_.identity, clock_.now());
  shard.tenure = news.tenure;
  if (!acted && news.tenure.acting) base::log::info("we hold the lease", {{"lease", shard.name}});
  if (acted && !news.tenure.acting)
    base::log::info("we hold the lease no more", {{"lease", shard.name}, {"holder", lease.holder}});
  if (news.gained) news_.gained(shard.index);
  if (!news.over || over_.exchange(true)) return;
  {
    std::lock_guard lock(mutex_);
    end_ = news.over;
  }
  news_.over();
}

}  // namespace controller
