#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "libs/aio/http_server.h"
#include "libs/base/clock.h"

namespace local_e2b {

inline constexpr std::size_t kIdempotencyRecordsMax = 10'000;
inline constexpr std::chrono::hours kIdempotencyKept{24};

bool valid_idempotency_key(const std::string& key);  // 1 to 255 of a-z 0-9.

// Remembers what was answered to a key of a team, so that a repeated request is not done twice.
class Idempotency {
 public:
  explicit Idempotency(const base::Clock& clock) : clock_(clock) {}

  struct Execute {};     // New: do it, then call finish.
  struct InProgress {};  // The first is still being done.
  struct Mismatch {};    // The key came with another request before.
  struct Full {};        // Too much is in progress at once.
  using Decision = std::variant<Execute, InProgress, Mismatch, Full, aio::HttpReply>;

  // `fingerprint` tells requests apart: method, target and body.
  Decision begin(const std::string& team, const std::string& key, const std::string& fingerprint);
  // Kept from now for kIdempotencyKept, errors too; repeats do not prolong it.
  void finish(const std::string& team, const std::string& key, const std::string& fingerprint,
              aio::HttpReply reply);
  std::size_t size() const { return records_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Record {
    std::string fingerprint;
    std::optional<aio::HttpReply> reply;
  };
  void forget(bool oldest_too);  // Those kept long enough, and one more when asked.

  const base::Clock& clock_;
  std::map<Key, Record> records_;
  std::deque<std::pair<base::Moment, Key>> finished_;
};

}  // namespace local_e2b
