#include "local_e2b/control/idempotency.h"

#include <algorithm>

namespace local_e2b {

bool valid_idempotency_key(const std::string& key) {
  return !key.empty() && key.size() <= 255 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

void Idempotency::forget(bool oldest_too) {
  const auto oldest_kept = clock_.now() - kIdempotencyKept;
  while (!finished_.empty() && (oldest_too || finished_.front().first < oldest_kept)) {
    records_.erase(finished_.front().second);
    finished_.pop_front();
    oldest_too = false;
  }
}

Idempotency::Decision Idempotency::begin(const std::string& team, const std::string& key,
                                         const std::string& fingerprint) {
  forget(false);
  const auto found = records_.find({team, key});
  if (found == records_.end()) {
    forget(records_.size() >= kIdempotencyRecordsMax);
    if (records_.size() >= kIdempotencyRecordsMax) return Full{};
    records_[{team, key}] = {fingerprint, std::nullopt};
    return Execute{};
  }
  if (found->second.fingerprint != fingerprint) return Mismatch{};
  if (!found->second.reply) return InProgress{};
  return *found->second.reply;
}

void Idempotency::finish(const std::string& team, const std::string& key,
                         const std::string& fingerprint, aio::HttpReply reply) {
  records_[{team, key}] = {fingerprint, std::move(reply)};
  finished_.emplace_back(clock_.now(), Key{team, key});
}

}  // namespace local_e2b
