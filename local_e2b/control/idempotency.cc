#include "local_e2b/control/idempotency.h"

#include <algorithm>

#include "libs/base/log.h"

namespace local_e2b {

bool valid_idempotency_key(const std::string& key) {
  return !key.empty() && key.size() <= 255 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

void Idempotency::take_over() {
  auto records = records_.load();
  std::sort(records.begin(), records.end(),
            [](const KeyRecord& one, const KeyRecord& other) { return one.at < other.at; });
  for (auto& record : records) {
    const auto age = std::max(clock_.wall() - record.at, base::Milliseconds(0));
    keep({record.team, record.key},
         {std::move(record.fingerprint), std::move(record.reply), clock_.now() - age});
  }
  forget(false);
}

void Idempotency::keep(const Key& key, Known known) {
  kept_.emplace_back(*known.since, key);
  known_[key] = std::move(known);
}

void Idempotency::forget(bool oldest_too) {
  const auto oldest_kept = clock_.now() - kIdempotencyKept;
  while (!kept_.empty() && (oldest_too || kept_.front().first < oldest_kept)) {
    const auto [since, key] = kept_.front();
    kept_.pop_front();
    const auto found = known_.find(key);
    if (found == known_.end() || found->second.since != since) continue;
    known_.erase(found);
    records_.remove(key.first, key.second);
    oldest_too = false;
  }
}

Idempotency::Decision Idempotency::begin(const std::string& team, const std::string& key,
                                         const std::string& fingerprint) {
  forget(false);
  const auto found = known_.find({team, key});
  if (found == known_.end()) {
    forget(known_.size() >= kIdempotencyRecordsMax);
    if (known_.size() >= kIdempotencyRecordsMax) return Full{};
    const auto saved = records_.save({team, key, fingerprint, clock_.wall()});
    if (!saved) return Unwritten{};
    known_[{team, key}] = {fingerprint, std::nullopt, std::nullopt};
    return Execute{};
  }
  if (found->second.fingerprint != fingerprint) return Mismatch{};
  if (found->second.reply) return *found->second.reply;
  if (found->second.since) return Unknown{};
  return InProgress{};
}

void Idempotency::finish(const std::string& team, const std::string& key,
                         const std::string& fingerprint, aio::HttpReply reply) {
  if (const auto saved = records_.save({team, key, fingerprint, clock_.wall(), reply}); !saved)
    base::log::error("cannot write down what was answered to an Idempotency-Key",
                     {{"error", saved.error()}});
  keep({team, key}, {fingerprint, std::move(reply), clock_.now()});
}

void Idempotency::settle(const std::string& team, const std::string& key,
                         const std::string& fingerprint, aio::HttpReply reply) {
  const auto found = known_.find({team, key});
  if (found == known_.end() || !found->second.reply)
    finish(team, key, fingerprint, std::move(reply));
}

}  // namespace local_e2b
