#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"
#include "local_e2b/state/json_folder.h"

namespace local_e2b {

// A request that came with an Idempotency-Key.
struct KeyRecord {
  std::string team, key;
  std::string fingerprint;  // Tells requests apart: method, target and body.
  base::WallTime at{};      // When it was answered; until then, when it came.
  std::optional<aio::HttpReply> reply = std::nullopt;
};
base::Json to_json(const KeyRecord& record);
base::Result<KeyRecord> key_record_from_json(const base::Json& json);

// What a server that starts again must know of such requests, one file each.
class KeyRecords {
 public:
  // In a state folder whose lock is held.
  static base::Result<KeyRecords> open(const std::filesystem::path& state);

  base::Result<base::Done> save(const KeyRecord& record) const;
  void remove(const std::string& team, const std::string& key) const;
  std::vector<KeyRecord> load() const;

 private:
  explicit KeyRecords(JsonFolder keys) : keys_(std::move(keys)) {}
  JsonFolder keys_;
};

}  // namespace local_e2b
