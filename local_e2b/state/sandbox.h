#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"
#include "local_e2b/box/box.h"

namespace local_e2b {

// What a sandbox is doing. Clients see two of these: running and paused.
enum class Phase { kStarting, kRunning, kPausing, kPaused, kResuming, kKilling };
std::string_view to_word(Phase phase);

// Everything we know of one sandbox, and all that a server needs to find it again.
struct Sandbox {
  std::string id;
  std::string team;
  std::string template_id;
  Phase phase = Phase::kStarting;

  std::map<std::string, std::string> metadata = {};
  bool auto_pause = false;
  bool auto_resume = false;
  std::int64_t timeout_seconds = 0;  // As asked for at its creation.
  std::optional<bool> allow_internet_access = std::nullopt;
  bool allow_public_traffic = true;
  base::Json network = nullptr;  // As asked for, passwords left out.

  base::WallTime started_at{};  // Of this run.
  base::WallTime end_at{};      // When running: its lease's end. When paused: when it was paused.

  std::string envd_token = {};
  std::string traffic_token = {};  // Only when traffic is not public.
  std::string envd_version = {};
  std::optional<BoxRecord> box = std::nullopt;  // None until it was built.

  std::string idempotency_key = {};  // Of the request that made it, and what that request said.
  std::string idempotency_fingerprint = {};
};

base::Json to_json(const Sandbox& sandbox);
base::Result<Sandbox> sandbox_from_json(const base::Json& json);

}  // namespace local_e2b
