#pragma once

#include <optional>
#include <string>

#include "libs/api/sandbox.h"

namespace api {

inline constexpr std::string_view kProviderFinalizer = "sandfleet.dev/in-use";

enum class Routing { kSubdomain, kHeader, kPathPrefix };
std::string_view to_word(Routing routing);

struct ProviderSpec {
  std::string api_url;
  std::string ca_bundle = {};  // PEM; empty: the system's.
  std::string data_url;
  Routing routing = Routing::kSubdomain;
  struct SecretRef {
    std::string name, key = "apiKey";
    bool operator==(const SecretRef&) const = default;
  };
  std::optional<SecretRef> credentials =
      {};  // Absent: the controller's --api-key-file or environment.
  // The provider's handler deadline plus its list lag: how long an unanswered create may still come
  // true.
  base::Seconds settle{90};
  base::Seconds first_lease{120};  // Of a sandbox that is not bound yet.
  bool operator==(const ProviderSpec&) const = default;
};

struct ProviderStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions = {};
  bool operator==(const ProviderStatus&) const = default;
};

// Cluster-scoped: its key has no namespace.
struct SandboxProvider {
  Metadata metadata;
  ProviderSpec spec;
  ProviderStatus status = {};
  bool operator==(const SandboxProvider&) const = default;
};

base::Json to_json(const SandboxProvider& provider);
base::Json to_json(const ProviderStatus& status);
base::Result<SandboxProvider> provider_from_json(const base::Json& json);

}  // namespace api
