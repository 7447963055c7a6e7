#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/json.h"
#include "libs/base/result.h"

// The executor's small HTTP side, for the controller only: JSON over HTTP/1.1 on kExecutorPort,
// every request with "Authorization: Bearer <admin token>". Errors: 401 {"error":…} for a bad
// token, 400, 404, 409 (another identity), 503.
//   GET  /v1/health   -> 200 Health
//   GET  /v1/activity -> 200 Activity
//   POST /v1/quiesce  Quiesce -> 200 Health; lapses after deadline_seconds of unfrozen time. With
//                     if_idle_for_ms, "quiesced" false: something was active since, and goes on
//   POST /v1/resumed  Resumed -> 200 Health; the marker is on disk before the answer
namespace wire {

// Below the ports that Linux gives to outgoing connections (from 32768 on): one of those, even one
// that has ended within the last minute, would keep the executor from listening.
inline constexpr int kExecutorPort = 24984;

// What the executor says on its stdout to whoever started it, each on a line of its own: that it
// waits for its start secrets on stdin, and that its port is open.
inline constexpr std::string_view kWaitingLine = "waiting";
inline constexpr std::string_view kServingLine = "serving";
// Its exit code when another one is at work: before it waits, or once it has its secrets.
inline constexpr int kExitTaken = 3;

// What the executor knows of itself; the marker is what survives in its runtime folder.
struct Identity {
  std::string uid;
  std::int64_t epoch = 0;
  std::int64_t incarnation = 0;
  std::int64_t run = 0;
  bool operator==(const Identity&) const = default;
};

struct Health {
  std::string instance;  // Random, one per executor process.
  std::string version;
  // As last told by `resumed` and written to the marker; run 0 before the first.
  Identity identity;
  bool quiesced = false;
  bool operator==(const Health&) const = default;
};

// Whether something is going on inside: what counts stands in executor/activity/activity.h.
struct Activity {
  std::int64_t idle_ms = 0;  // So long nothing has been active, in time that was not frozen.
  bool operator==(const Activity&) const = default;
};

inline constexpr std::int64_t kQuiesceSecondsMax = 3600;

struct Quiesce {
  std::int64_t deadline_seconds = 120;  // 1 to kQuiesceSecondsMax.
  // Only if nothing has been active for so long, which is looked at and settled in one step: what
  // comes after it finds the executor quiesced, and what came before keeps it from being.
  std::optional<std::int64_t> if_idle_for_ms = std::nullopt;
};

inline constexpr std::size_t kNewsBytesMax = 1024;

// Why the sandbox is not the one that its harnesses knew, in a word and for people. They are told.
struct News {
  std::string kind;     // "recreated", "rolledBack", "restored", "lost": 1 to 64 bytes.
  std::string message;  // 1 to kNewsBytesMax bytes.
  bool operator==(const News&) const = default;
};

struct Resumed {
  Identity identity;
  std::int64_t now_ms = 0;  // The controller's wall clock, Unix milliseconds.
  std::optional<News> news = std::nullopt;
};

// The first and only line on the executor's stdin: a JSON object with the two keys in hexadecimal.
struct StartSecrets {
  std::string uid;
  std::int64_t epoch = 0;
  std::string attach_key, admin_key;  // Raw bytes.
};

base::Json to_json(const Identity& identity);
base::Json to_json(const Health& health);
base::Json to_json(const Activity& activity);
base::Json to_json(const Quiesce& quiesce);
base::Json to_json(const Resumed& resumed);
base::Json to_json(const StartSecrets& secrets);
base::Result<Identity> identity_from_json(const base::Json& json);
base::Result<Health> health_from_json(const base::Json& json);
base::Result<Activity> activity_from_json(const base::Json& json);
base::Result<Quiesce> quiesce_from_json(const base::Json& json);
base::Result<Resumed> resumed_from_json(const base::Json& json);
base::Result<StartSecrets> start_secrets_from_json(const base::Json& json);

}  // namespace wire
