#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/provider.h"
#include "libs/api/sandbox.h"

namespace api {

struct Event {
  std::string type;  // Normal or Warning.
  std::string reason, action, note;
  bool operator==(const Event&) const = default;
};

// One event as it is kept: repeats are counted, not repeated.
struct RecordedEvent {
  Key regarding;
  std::string regarding_uid;
  Event event;
  base::WallTime first, last;
  std::int64_t count = 1;
};

// What must still hold for a write to be taken; else it fails as kConflict and nothing changes.
struct Expected {
  std::string uid;
  std::string resource_version = {};  // Empty: any.
};

// Where resources live: a cluster, or a folder of manifests with a state folder. A write outlives
// this process when it returns, and a power loss too unless it says kSoon. kNotFound: no such
// object; kConflict: a precondition failed, read again; kUnavailable: the store did not answer. The
// reconciler never writes spec.
class ResourceStore {
 public:
  virtual ~ResourceStore() = default;

  // When a write must outlive a power loss.
  enum class Durability {
    kNow,
    // A moment later, or with the next write of that object: for what a look at the provider tells
    // again.
    kSoon,
  };

  // From memory: as of the last event, never from before this process's own last write.
  virtual std::shared_ptr<const Sandbox> find_sandbox(const Key& key) const = 0;
  virtual std::shared_ptr<const Sandbox> find_by_uid(const std::string& uid) const = 0;
  virtual std::vector<std::shared_ptr<const Sandbox>> sandboxes() const = 0;
  virtual std::vector<std::shared_ptr<const Sandbox>> sandboxes_of(
      const std::string& provider) const = 0;
  virtual std::shared_ptr<const SandboxProvider> find_provider(const std::string& name) const = 0;
  virtual std::vector<std::shared_ptr<const SandboxProvider>> providers() const = 0;

  // Past every cache.
  virtual base::Result<std::optional<Sandbox>> get_sandbox(const Key& key) = 0;
  // One key of a Secret; kNotFound names what is missing.
  virtual base::Result<std::string> get_secret(const Key& secret, const std::string& key) = 0;

  // Replaces annotations and finalizers in one write.
  virtual base::Result<Sandbox> update_metadata(
      const Key& key, const Expected& expected,
      const std::map<std::string, std::string>& annotations,
      const std::vector<std::string>& finalizers) = 0;
  virtual base::Result<Sandbox> update_status(const Key& key, const Expected& expected,
                                              const SandboxStatus& status,
                                              Durability durability) = 0;
  // Writes status only if uid and attempt annotation are as given and sandboxID is empty or of an
  // older epoch: the one write that may give a Sandbox its E2B sandbox. kSoon: without it the E2B
  // sandbox is found by its attempt and bound again.
  virtual base::Result<Sandbox> bind(const Key& key, const std::string& uid, const Attempt& attempt,
                                     const SandboxStatus& status) = 0;
  virtual base::Result<SandboxProvider> update_provider_status(const std::string& name,
                                                               const Expected& expected,
                                                               const ProviderStatus& status) = 0;
  // Whether a provider, when it is deleted, stays until it is let go: what is left there needs it.
  // A store that sees to that by itself does nothing.
  virtual base::Result<base::Done> hold_provider(const std::string& name, const std::string& uid,
                                                 bool held) = 0;
  // Asks for deletion, as a user would (for ttlSecondsAfterTerminated).
  virtual base::Result<base::Done> delete_sandbox(const Key& key, const std::string& uid) = 0;

  // Asks for a Sandbox that idles (kWakeAnnotation), on behalf of somebody who may attach to it.
  // Told as a change, whoever wrote it.
  virtual base::Result<base::Done> request_wake(const Key& key, const Expected& expected,
                                                const std::string& value) = 0;

  virtual void record_event(const Sandbox& regarding, const Event& event) = 0;

  // Release records: ids that must outlive their Sandbox untouched by the sweep. Bounded;
  // kRateLimited when full.
  struct Release {
    std::string sandbox_id, uid, provider, policy;
    base::WallTime time = {};
  };
  virtual base::Result<base::Done> add_release(const Release& release) = 0;
  virtual base::Result<std::vector<Release>> releases(const std::string& provider) = 0;
  virtual base::Result<base::Done> remove_release(const std::string& provider,
                                                  const std::string& sandbox_id) = 0;

  // The way into an E2B sandbox, where its provider tells a token only once. Readable by us alone,
  // gone with the object, and never printed.
  struct WayIn {
    std::string sandbox_id, envd_version;
    std::optional<std::string> envd_token = {}, traffic_token = {};
    bool operator==(const WayIn&) const = default;
  };
  // The newest replaces the one before. kNotFound, kConflict: the object is gone, or another.
  virtual base::Result<base::Done> keep_way_in(const Key& key, const std::string& uid,
                                               const WayIn& way) = 0;
  virtual base::Result<std::optional<WayIn>> kept_way_in(const std::string& uid) = 0;

  // Called with each key that changed, unless by a write of metadata or status through this store:
  // whoever wrote knows. From the store's own thread, or a writer's; must be short. Register before
  // start.
  virtual void on_sandbox_change(std::function<void(const Key&)> changed) = 0;
  virtual void on_provider_change(std::function<void(const std::string& name)> changed) = 0;

  // This installation's name on everything it creates: two of them never touch each other's.
  virtual std::string fleet_id() const = 0;
  // 32 bytes that make every executor's keys; kept 0600, made on first use.
  virtual base::Result<std::string> fleet_key() = 0;
};

}  // namespace api
