#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/base/clock.h"
#include "local_e2b/state/key_records.h"

namespace local_e2b {

inline constexpr std::size_t kIdempotencyRecordsMax = 10'000;
inline constexpr std::chrono::hours kIdempotencyKept{24};

bool valid_idempotency_key(const std::string& key);  // 1 to 255 of a-z 0-9.

// Remembers what was answered to a key of a team, so that a repeated request is not done twice. A
// key is on record before its request is done, and with its answer after: what a server that died
// in between did of the request is not known, and it is never done again.
class Idempotency {
 public:
  Idempotency(const KeyRecords& records, const base::Clock& clock)
      : records_(records), clock_(clock) {}

  // Before the first request: takes over what the server before this one put on record.
  void take_over();

  struct Execute {};     // New: do it, then call finish.
  struct InProgress {};  // The first is still being done.
  struct Unknown {};     // The first was being done when the server died.
  struct Mismatch {};    // The key came with another request before.
  struct Full {};        // Too much is in progress at once.
  struct Unwritten {};   // It cannot be put on record: the same key may be tried again.
  using Decision =
      std::variant<Execute, InProgress, Unknown, Mismatch, Full, Unwritten, aio::HttpReply>;

  // `fingerprint` tells requests apart: method, target and body.
  Decision begin(const std::string& team, const std::string& key, const std::string& fingerprint);
  // Kept from now for kIdempotencyKept, errors too; repeats do not prolong it.
  void finish(const std::string& team, const std::string& key, const std::string& fingerprint,
              aio::HttpReply reply);
  // Of a request whose outcome shows in the world: finishes it unless its answer is known.
  void settle(const std::string& team, const std::string& key, const std::string& fingerprint,
              aio::HttpReply reply);
  std::size_t size() const { return known_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Known {
    std::string fingerprint;
    std::optional<aio::HttpReply> reply;
    std::optional<base::Moment> since;  // Once it is no longer in progress.
  };
  void keep(const Key& key, Known known);
  void forget(bool oldest_too);  // Those kept long enough, and one more when asked.

  const KeyRecords& records_;
  const base::Clock& clock_;
  std::map<Key, Known> known_;
  std::deque<std::pair<base::Moment, Key>> kept_;  // Oldest first; a moment may be outdated.
};

}  // namespace local_e2b
