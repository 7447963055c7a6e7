#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "libs/api/provider.h"
#include "libs/api/sandbox.h"
#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"
#include "libs/wire/admin.h"

namespace controller {

// One E2B sandbox as a GET or a list last showed it, reduced to what is decided by: many are kept.
struct Sighting {
  std::string id;
  e2b::State state = e2b::State::kRunning;
  std::string uid = {}, nonce = {};  // Whose it is, as its metadata says.
  std::int64_t epoch = 0;            // 0 when unreadable.
  std::optional<base::WallTime> started_at = {}, end_at = {};
  std::string envd_version = {};
  bool operator==(const Sighting&) const = default;
};
Sighting sighting_of(e2b::SandboxInfo info);

// One complete list of a provider, reduced to the E2B sandboxes that carry our fleet and the UID of
// one Sandbox.
struct Listed {
  base::Moment started = {};  // When we asked: nothing later can be inferred from it.
  std::vector<Sighting> sandboxes = {};
  bool operator==(const Listed&) const = default;
};

// The newest GET of one id. Misses count the 404s since it was last seen.
struct Got {
  base::Moment started = {};
  std::optional<Sighting> info = {};
  int misses = 0;
  base::Moment first_miss = {};
  bool operator==(const Got&) const = default;
};

// What became of the create that this process sent last.
struct Sent {
  api::Attempt attempt;
  std::string id = {};                             // It made this one.
  std::optional<e2b::CreateFailure> failure = {};  // It did not, or nobody knows.
  bool operator==(const Sent&) const = default;
};

// What is known of the executor in one run of one E2B sandbox.
struct ExecutorView {
  enum class Kind { kUnknown, kAnswering, kSilent, kRefuses, kGone } kind = Kind::kUnknown;
  std::string sandbox_id = {};
  std::optional<base::WallTime> started_at = {};  // Of the run that was looked at.
  wire::Health health = {};
  base::Moment ask_at = base::Moment::max();  // What it said counts until then; see rounds.h.
  int closed = 0;                             // Asks in a row that found nobody listening.
  std::string request = {};  // The newest request of a person to look that it has answered.
  bool operator==(const ExecutorView&) const = default;
};

// What keeps a sandbox from being put to rest, the same again and again: tried anew, each time
// later, unless the resource changed meanwhile or somebody asked for a look.
struct IdleTrouble {
  // On the way there; what succeeds at one ends the trouble that was there, and before. The last
  // quiesce is the one right before the action.
  enum class Step { kAskActivity, kQuiesce, kLastQuiesce, kIdleAction } step = Step::kAskActivity;
  int failures = 1;  // In a row.
  base::Moment until = {};
  std::string what = {};
  std::int64_t generation = 0;
  std::string request = {};  // As ExecutorView::request.
  bool operator==(const IdleTrouble&) const = default;
};

// What is known of whether a sandbox idles (idle.h). Times of a run: forgotten with its executor.
struct IdleView {
  base::Moment ask_at = {};  // When its activity is asked for next.
  // As it was when that was asked for last; nothing while nobody has said.
  std::optional<base::Milliseconds> idle_for = {};
  // It stands still because it idled: what it is to become goes on record by then, or it goes on.
  std::optional<base::Moment> record_by = {};
  std::string wake_seen = {};  // request_to_wake() of when that was decided.
  bool busy = false;  // It is on record as paused or ended for idleness, and goes on after all.
  std::optional<IdleTrouble> trouble = {};
  bool operator==(const IdleView&) const = default;
};

// What the Operation under way is at, for people.
struct Progress {
  std::string step = {};
  base::Moment since = {};
  bool told = false;  // That it is slow.
  bool operator==(const Progress&) const = default;
};
inline constexpr base::Milliseconds kSlowStep{10'000};
inline constexpr base::Milliseconds kSlowStepLook{1'000};  // From one look at it to the next.

// A step that failed is not tried again before `until`, unless the resource changed meanwhile or
// somebody asked for a look.
struct HeldBack {
  int failures = 0;
  std::string step = {};  // The action that failed.
  base::Moment until = {};
  std::string reason = {};  // Of the catalogue.
  base::Error why = {base::ErrorCode::kUnavailable, {}};
  std::int64_t generation = 0;
  bool deleting = false;
  std::string request = {};  // As ExecutorView::request.
  bool for_good = false;     // Only a change can help.
  bool standstill = false;   // Told as one, whether or not it is tried again.
  // Its outcome is open: it was said to be done, or not answered. It stands in the way of its own
  // repetition only, and is forgotten when a look shows that it came true.
  bool open = false;
  bool operator==(const HeldBack&) const = default;
};

// What this process remembers of its own calls for one Sandbox; lost in a crash, and then learned
// again by looking.
struct Memory {
  std::string recorded_nonce = {};  // This process wrote that intent, so nobody before it sent it.
  std::optional<Sent> sent = {};
  std::string made = {};                        // The id that our newest create returned.
  std::optional<base::Moment> send_ended = {};  // The last create, whatever its answer.
  std::set<std::string> shown = {};  // Ids that a GET or a list has shown: those are past the lag.
  // The way in, of the newest create or connect; absent after a restart, and then read again.
  std::optional<e2b::Handle> handle = {};
  std::optional<base::Moment> unclear_send_ended = {};  // The last create nobody answered clearly.
  base::Moment changed = {};  // Our last change to the bound one ended then: older looks are stale.
  std::optional<Listed> listed = {};
  std::map<std::string, Got> got = {};
  std::map<std::string, base::Moment> killed = {};  // When the DELETE of that id was answered.
  bool bound_here = false;
  std::string extended = {}, released = {}, left = {};  // Ids for which that was done.
  ExecutorView executor = {};
  IdleView idle = {};
  bool refusal_counted = false;  // The incarnation has grown for an executor that refuses us.
  // key_of_run of those whose incarnation was decided, so that it grows once.
  std::string judged = {};
  bool rolled_back = false;  // Seen before a resume: what is saved is older than the last run.
  std::string told = {};     // The run and executor instance that `resumed` has reached.
  bool quiesced = false;     // By us, before a pause that has not come true.
  std::optional<Progress> progress = {};
  HeldBack held = {};
  bool operator==(const Memory&) const = default;
};

struct NeverTried {};  // No create is on record, and a complete list shows nothing of ours.
struct Unknown {       // There is no witness, or all are older than our own last change.
  std::string why;
};
struct Missing {};       // A witness does not see it; that proves nothing yet.
struct ProvenAbsent {};  // By the rule of docs/design: GET twice and a full list between agree.
struct Foreign {         // The id on record belongs to somebody else.
  std::string id;
};
struct Found {
  Sighting info;
};
using Actual = std::variant<NeverTried, Unknown, Missing, ProvenAbsent, Foreign, Found>;

// All that one pass may look at. Not knowing is a fact like any other, and so is the time.
struct Observation {
  api::Sandbox wanted;
  std::optional<api::SandboxProvider> provider = {};
  std::optional<base::Error> provider_problem = {};  // Why it cannot be asked.
  std::string provider_reason = {};                  // The same, of the catalogue.
  Actual actual = Unknown{"not looked at yet"};
  // The provider is full: why no create is sent now, and for how long.
  std::optional<base::Error> no_room = {};
  std::optional<std::string> operation = {};  // What runs for it right now.
  Memory memory = {};  // `listed` is the newest of our own look and the provider's last poll.
  base::Moment now = {};
  base::WallTime wall = {};
  base::Moment began = {};  // Since when we alone act: when this process, or its lease, began.
};

// Something changed at the provider, or may have: what was seen before is no witness any more.
void outdate(Memory& memory, base::Moment now);

// The step that takes longer than kSlowStep, if one does.
std::optional<Progress> slow_step(const Observation& seen);
// When to look at the Operation under way, which brings the key back at its end: when its step
// becomes slow, and from then on so often that a step's end is seen.
base::Milliseconds until_slow(const Observation& seen);

// Names one run of one executor process.
std::string key_of_run(const std::string& instance,
                       const std::optional<base::WallTime>& started_at);
bool shows(const Listed& listed, const std::string& id);
void note_shown(Memory& memory, const Listed& listed);
// A GET of our own has shown each of these as a list shows it now: that is no reason for a look.
bool is_as_got(const Memory& memory, std::span<const Sighting> sandboxes);

// From the intent on, until nothing of it is left at the provider.
bool has_finalizer(const api::Sandbox& wanted);

// What is held back is of the Sandbox as it is wanted now.
bool is_held_as_wanted(const Observation& seen);

// An earlier process found it Ready, and this one has yet to hear from its executor.
bool is_ready_unheard(const Observation& seen);

// A look shows what the step with an open outcome was for.
bool came_true(const Observation& seen);

// Reads the witnesses: what the provider's side of `seen.wanted` is, as far as it is known.
Actual actual_of(const Observation& seen);

// When the last create that may still come true ended; nothing when there is none.
std::optional<base::Moment> unclear_send_ended(const Observation& seen);
// From when on a list tells all that was ever sent: settle after the last create ended, as far as
// it is known, else after this process began.
base::Moment all_sent_shows(const Observation& seen);
// A create that nobody answered can no longer come true: a complete list from after it settled
// shows nothing of ours.
bool settled(const Observation& seen);

// Metadata keys on everything we create.
namespace key {
inline constexpr const char* kFleet = "sandfleet.fleet";
inline constexpr const char* kNamespace = "sandfleet.namespace";
inline constexpr const char* kName = "sandfleet.name";
inline constexpr const char* kUid = "sandfleet.uid";
inline constexpr const char* kEpoch = "sandfleet.epoch";
inline constexpr const char* kNonce = "sandfleet.nonce";
}  // namespace key
std::string metadata_at(const e2b::SandboxInfo& info, const char* key);  // "" when absent.
std::int64_t epoch_of(const e2b::SandboxInfo& info);                     // 0 when unreadable.

}  // namespace controller
