#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/json.h"
#include "libs/e2b/cloud.h"
#include "libs/net/transport.h"

// The control plane's words, and what they mean: pure, so that tables can test it.
namespace e2b {

enum class Version { kV1, kV2 };

std::string create_body(const NewSandbox& wanted, Version version);
// The `metadata` query value: keys and values encoded twice, the joined pairs once more.
std::string metadata_query(const std::map<std::string, std::string>& metadata);

// Errors say what is missing or malformed, never a value.
base::Result<Handle> read_handle(std::string_view body);
base::Result<SandboxInfo> read_info(const base::Json& item);
base::Result<SandboxInfo> read_info_body(std::string_view body);

// What a reply other than success says, whoever wrote it.
struct Refusal {
  int status = 0;
  bool is_json = false;
  bool has_code = false;  // The numeric `code` by which the API's own errors are known.
  std::string error_code = {};
  std::string message = {};
  bool has_retry_after = false;
  std::optional<base::Milliseconds> retry_after = {};
};
Refusal read_refusal(const net::Response& response);

inline constexpr base::Seconds kRetryAfterMax{3'600};  // A longer one is cut.

// Whether the provider lacks this route, as far as one reply can tell.
bool lacks_route(const Refusal& refusal);
// `what` is what was tried ("pause of i123"); `secret` is cut out of the provider's words.
base::Error error_of(std::string_view what, const Refusal& refusal, std::string_view secret);
CreateFailure create_failure_of(std::string_view what, const Refusal& refusal,
                                std::string_view secret);
std::optional<base::WallTime> provider_time(const net::Response& response);

}  // namespace e2b
