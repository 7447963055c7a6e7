#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libs/base/json.h"
#include "local_e2b/control/answer.h"

// What the bodies of the control plane's requests say, checked. Pure.
namespace local_e2b {

enum class Version { kV1, kV2 };

inline constexpr std::size_t kMetadataPairsMax = 128;
inline constexpr std::size_t kMetadataBytesMax = 32u << 10;
inline constexpr std::size_t kEnvBytesMax = 512u << 10;

struct CreateRequest {
  std::string template_id;
  std::int64_t timeout_seconds = 0;
  bool auto_pause = false;
  bool auto_resume = false;
  std::optional<bool> allow_internet_access = std::nullopt;
  bool allow_public_traffic = true;
  base::Json network = nullptr;
  std::map<std::string, std::string> metadata = {};
  std::map<std::string, std::string> env = {};
  std::string idempotency_key = {};
  std::string idempotency_fingerprint = {};
};

// `run_seconds_max` is the longest that a sandbox may run without a pause.
Outcome<CreateRequest> parse_create(const base::Json& body, Version version,
                                    std::int64_t run_seconds_max);
// "[namespace/]alias[:tag]" down to the alias of a template that is there.
Outcome<std::string> resolve_template(std::string_view id);

struct ConnectRequest {
  std::int64_t timeout_seconds = 0;
};
Outcome<ConnectRequest> parse_connect(const base::Json& body, Version version,
                                      std::int64_t run_seconds_max);
Outcome<ConnectRequest> parse_resume(const base::Json& body, std::int64_t run_seconds_max);
Outcome<base::Done> parse_pause(const base::Json& body);
Outcome<std::int64_t> parse_timeout(const base::Json& body);
Outcome<std::int64_t> parse_refresh(const base::Json& body);

// The id of a path: "iabc", or the older "iabc-6532622b".
Outcome<std::string> parse_sandbox_id(std::string_view segment);

}  // namespace local_e2b
