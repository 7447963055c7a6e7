#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"
#include "libs/base/shared_text.h"

// The resources of sandfleet.dev/v1alpha1; crds/ says what each field means.
namespace api {

inline constexpr std::string_view kGroupVersion = "sandfleet.dev/v1alpha1";
inline constexpr std::string_view kFinalizer = "sandfleet.dev/e2b-sandbox";
inline constexpr std::string_view kAttemptAnnotation = "sandfleet.dev/attempt";
// The store lost what it knew of this object, all but its UID; gone once an attempt is on record.
inline constexpr std::string_view kRecoveredAnnotation = "sandfleet.dev/recovered";

struct Key {
  std::string space, name;  // Namespace (empty for cluster-scoped kinds) and name.
  auto operator<=>(const Key&) const = default;
};
std::string to_text(const Key& key);  // "namespace/name"

struct Metadata {
  Key key;
  std::string uid = {};
  std::int64_t generation = 1;
  std::string resource_version = {};
  std::map<std::string, std::string> labels = {}, annotations = {};
  std::vector<std::string> finalizers = {};
  std::optional<base::WallTime> created = {};
  std::optional<base::WallTime> deleted = {};  // When deletion was asked for.
  bool operator==(const Metadata&) const = default;
};

struct Condition {
  base::SharedText type, status, reason, message;  // status: True, False or Unknown.
  std::int64_t observed_generation = 0;
  base::WallTime last_transition = {};
  bool operator==(const Condition&) const = default;
};

enum class DesiredState { kRunning, kPaused, kTerminated };
enum class DeletionPolicy { kKill, kPause, kLeave };
enum class OnTimeout { kPause, kKill };
enum class IdleAction { kPause, kTerminate };

struct EnvVar {
  std::string name;
  std::optional<std::string> value = {};
  struct SecretKey {
    std::string name, key;
    bool operator==(const SecretKey&) const = default;
  };
  std::optional<SecretKey> secret = {};
  bool operator==(const EnvVar&) const = default;
};

struct SandboxSpec {
  std::string provider = "default";
  std::string template_id = {};
  DesiredState desired_state = DesiredState::kRunning;
  DeletionPolicy deletion_policy = DeletionPolicy::kKill;
  struct KeepAlive {
    base::Seconds timeout{300}, heartbeat{30};
    OnTimeout on_timeout = OnTimeout::kPause;
    bool operator==(const KeepAlive&) const = default;
  } keep_alive = {};
  struct Lifecycle {
    std::optional<base::Seconds> max_lifetime = {};  // Counted from creation.
    std::optional<base::WallTime> shutdown_time = {};
    std::optional<base::Seconds> ttl_after_terminated = {};
    std::optional<base::Seconds> idle = {};  // So long nothing is active, then:
    IdleAction idle_action = IdleAction::kPause;
    bool wake_on_attach = false;
    bool operator==(const Lifecycle&) const = default;
  } lifecycle = {};
  std::vector<EnvVar> env = {};
  std::map<std::string, std::string> provider_metadata = {};
  bool operator==(const SandboxSpec&) const = default;
};

// Why a Sandbox was ended for good, written before the kill; "" while it was not.
enum class EndedBy { kNobody, kUser, kShutdownTime, kMaxLifetime, kIdle };
enum class PausedBy { kNobody, kUser, kIdle };

struct SandboxStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions = {};
  std::string state = {};  // A printed word that derives from the conditions.
  std::string sandbox_id = {};
  std::int64_t epoch = 0;        // Grows when another E2B sandbox takes over.
  std::int64_t incarnation = 0;  // Grows whenever the processes of before are gone.
  std::int64_t run = 0;          // Counts starts and resumes.
  PausedBy paused_by = PausedBy::kNobody;
  std::string wake_seen = {};  // With kIdle: request_to_wake() as it was when it was found idle.
  EndedBy ended_by = EndedBy::kNobody;
  std::string endpoint_url = {}, endpoint_routing = {};
  std::string envd_version = {};
  std::optional<base::WallTime> start_time = {};  // Of this run, by the provider's clock.
  std::optional<base::WallTime> terminated_time = {};
  struct Notice {
    std::int64_t number = 0;
    base::WallTime time = {};
    std::string text;
    bool operator==(const Notice&) const = default;
  };
  std::vector<Notice> notices = {};  // The last kNoticesMax.
  bool operator==(const SandboxStatus&) const = default;
};
inline constexpr std::size_t kNoticesMax = 10;
inline constexpr std::size_t kWakeSeenBytesMax = 256;

struct Sandbox {
  Metadata metadata;
  SandboxSpec spec;
  SandboxStatus status = {};
  bool deleting() const { return metadata.deleted.has_value(); }
  bool operator==(const Sandbox&) const = default;
};

// The create that is on record for a Sandbox, in kAttemptAnnotation: only ever replaced.
struct Attempt {
  std::string nonce;  // 32 hexadecimal digits.
  std::int64_t epoch = 1;
  // Grows with each definite refusal, so that the next try has another idempotency key.
  std::int64_t number = 0;
  bool operator==(const Attempt&) const = default;
};
std::string to_text(const Attempt& attempt);  // JSON, for the annotation.
std::optional<Attempt> attempt_of(const Metadata& metadata);

const Condition* find_condition(const SandboxStatus& status, std::string_view type);
// Sets or adds it; the transition time moves only when the status word does.
void set_condition(std::vector<Condition>& conditions, Condition wanted);

base::Json to_json(const Sandbox& sandbox);  // The whole object as Kubernetes would print it.
base::Json to_json(const SandboxStatus& status);
base::Json to_json(const SandboxSpec& spec);
// Reads an object that satisfied the schema, defaults filled in.
base::Result<Sandbox> sandbox_from_json(const base::Json& json);

std::string_view to_word(DesiredState state);
std::string_view to_word(DeletionPolicy policy);
std::string_view to_word(OnTimeout action);
std::string_view to_word(IdleAction action);
std::string_view to_word(EndedBy reason);
std::string_view to_word(PausedBy reason);

}  // namespace api
