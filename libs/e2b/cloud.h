#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"

// The part of an E2B-compatible service that owns sandbox lifetimes, as a controller needs it.
// Wire facts: the published OpenAPI document and SDKs of e2b.dev; docs/design/provider-wire.md.
namespace e2b {

enum class State {
  kRunning,
  kPaused,
  kOther,  // A word this client does not know; never a reason to act.
};

// One E2B sandbox as GET and list describe it. Times are the provider's own clock.
struct SandboxInfo {
  std::string id;
  State state = State::kRunning;
  std::string template_id = {};
  std::map<std::string, std::string> metadata = {};
  std::optional<base::WallTime> started_at = {};  // Of the present run; changes on every resume.
  // Running: when the lease ends. Paused: when it was saved.
  std::optional<base::WallTime> end_at = {};
  std::string envd_version = {};
  std::optional<std::string> pause_mode = {};  // "full" or "filesystem", once a pause has finished.
  bool operator==(const SandboxInfo&) const = default;
};

// What it takes to reach into an E2B sandbox; tokens are always those of the newest answer, and a
// printed Handle shows none of them.
struct Handle {
  std::string id;
  std::string envd_version = {};
  std::optional<std::string> envd_access_token = {};
  std::optional<std::string> traffic_access_token = {};
  std::optional<std::string> domain = {};
  bool operator==(const Handle&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Handle& handle);

struct NewSandbox {
  std::string template_id;
  base::Seconds timeout{300};
  bool auto_pause = false;
  std::map<std::string, std::string> metadata = {};
  std::map<std::string, std::string> env = {};
  std::string idempotency_key = {};  // [a-z0-9]{1,255}
  bool operator==(const NewSandbox&) const = default;
};

// Why a create gave no sandbox, and whether that is certain.
struct CreateFailure : base::Error {
  enum class Kind {
    kAmbiguous,  // It may exist: look for it before another try.
    kRefused,    // Will be refused again as it stands (bad template, denied, invalid).
    kQuota,      // 429 without Retry-After: too many sandboxes at once.
    kRate,       // 429 with Retry-After.
    kCapacity,   // 503 with a capacity error_code.
    kNotSent,    // No byte of the request went out.
  };
  Kind kind = Kind::kAmbiguous;
  bool definite() const { return kind != Kind::kAmbiguous; }
  bool operator==(const CreateFailure&) const = default;
};

// A fact as the provider told it, with its own clock (the Date header) at that time.
template <typename T>
struct Told {
  T value;
  std::optional<base::WallTime> provider_time = {};
};

struct Connected {
  Handle handle;
  bool resumed = false;  // 201: it was paused, its connections are dead. 200: it ran already.
};

enum class KillAnswer { kKilled, kNotThere };
// kAlreadyPaused is the provider's 409: paused before, or a change that is under way. Both mean
// "nothing was done by this call", so only a look tells which.
enum class PauseAnswer { kPaused, kAlreadyPaused };

struct Filter {
  std::map<std::string, std::string> metadata = {};  // All pairs, exactly; servers may ignore it.
};

// Every call but create is safe to repeat; after a create that failed ambiguously, look before
// another. Failures: kNotFound is "unknown or another team's", once; kDenied a bad credential;
// kConflict a change in progress; kRateLimited with retry_after; kInvalid a refusal for good.
class Cloud {
 public:
  virtual ~Cloud() = default;
  virtual base::Result<Handle, CreateFailure> create(const NewSandbox& wanted,
                                                     std::stop_token stop) = 0;
  // Nothing: 404. One miss is no proof of absence.
  virtual base::Result<Told<std::optional<SandboxInfo>>> get(const std::string& id,
                                                             std::stop_token stop) = 0;
  // The tokens of a running or paused sandbox, read again by GET; absent where they are hidden.
  virtual base::Result<std::optional<Handle>> handle(const std::string& id,
                                                     std::stop_token stop) = 0;
  // Running and paused, every page, or an error: never a part.
  virtual base::Result<Told<std::vector<SandboxInfo>>> list(const Filter& filter,
                                                            std::stop_token stop) = 0;
  virtual base::Result<KillAnswer> kill(const std::string& id, std::stop_token stop) = 0;
  // Long: up to the provider's own limit. Never hedged; the run may be gone after kUnavailable:
  // look.
  virtual base::Result<PauseAnswer> pause(const std::string& id, std::stop_token stop) = 0;
  // Resumes a paused one; a running one's lease is only ever lengthened.
  virtual base::Result<Connected> connect(const std::string& id, base::Seconds timeout,
                                          std::stop_token stop) = 0;
  // Lengthens the lease to at least now + `timeout`; never shortens. kNotFound also when paused.
  virtual base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                          std::stop_token stop) = 0;
  // The same without blocking, for heartbeats; `done` runs once, on another thread; it must be
  // short.
  virtual void start_extend(const std::string& id, base::Seconds timeout,
                            std::function<void(base::Result<base::Done>)> done) = 0;
  // The same by the one call that cannot shorten a lease, whoever else sets it meanwhile, at most
  // to what one such call may ask for; kUnavailable where a provider lacks it.
  virtual void start_refresh(const std::string& id, base::Seconds timeout,
                             std::function<void(base::Result<base::Done>)> done) = 0;
};

}  // namespace e2b
