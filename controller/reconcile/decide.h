#pragma once

#include <string>
#include <variant>

#include "controller/reconcile/observation.h"

namespace controller {

// Every action is safe to repeat. Those that start with Record change status only, and are
// carried out by the write that ends the pass.

struct Look {  // A network read, by GET of `id` or, when that is empty, by a full list.
  std::string id = {};
  bool operator==(const Look&) const = default;
};
// Finalizer and attempt in one write: from then on nothing we create can be forgotten. Without
// `adopted` the nonce is new.
struct RecordIntent {
  std::optional<api::Attempt> adopted = {};
  std::int64_t epoch = 1;
  bool operator==(const RecordIntent&) const = default;
};
struct CountRefusal {  // After a definite refusal the next try needs another key.
  api::Attempt next;
  bool operator==(const CountRefusal&) const = default;
};
struct Create {
  api::Attempt attempt;
  bool operator==(const Create&) const = default;
};
struct Bind {
  std::string id;
  api::Attempt attempt;
  bool operator==(const Bind&) const = default;
};
struct Extend {
  std::string id;
  bool operator==(const Extend&) const = default;
};
struct Prepare {  // Brings our executor to life; `replace` ends one that refuses our token first.
  std::string id;
  std::optional<base::WallTime> started_at = {};
  bool replace = false;
  bool operator==(const Prepare&) const = default;
};
struct AskExecutor {  // Whether it is as well as when it was last heard.
  std::string id;
  std::optional<base::WallTime> started_at = {};
  bool operator==(const AskExecutor&) const = default;
};
struct AskActivity {  // For how long nothing has been active in it, where so long would be idle.
  std::string id;
  base::Seconds idle{0};
  bool operator==(const AskActivity&) const = default;
};
// Has the executor stand still, if nothing has been active for so long: from then on no request of
// a harness can begin, and what is next is put on record.
struct QuiesceIdle {
  std::string id;
  base::Seconds idle{0};
  std::string wake_seen = {};
  bool operator==(const QuiesceIdle&) const = default;
};
struct RecordIncarnation {
  std::int64_t incarnation = 0;
  std::string notice = {};
  bool operator==(const RecordIncarnation&) const = default;
};
struct Resumed {  // Tells the executor who it is now, and its sessions why; it thaws.
  std::string id;
  wire::Identity identity;
  std::optional<wire::News> news = {};
  bool operator==(const Resumed&) const = default;
};
struct RecordRun {
  std::int64_t run = 0;
  std::optional<base::WallTime> start_time = {};
  bool operator==(const RecordRun&) const = default;
};
struct RecordPausedBy {
  api::PausedBy by = api::PausedBy::kNobody;
  std::string wake_seen = {};  // With kIdle.
  bool operator==(const RecordPausedBy&) const = default;
};
struct Pause {
  std::string id;
  std::optional<base::Seconds> if_idle_for = {};  // Else it is no longer wanted.
  bool operator==(const Pause&) const = default;
};
struct Connect {
  std::string id;
  bool rolled_back = false;
  bool operator==(const Connect&) const = default;
};
struct Kill {
  std::string id;
  std::optional<base::Seconds> if_idle_for = {};  // As of a Pause.
  bool operator==(const Kill&) const = default;
};
struct RecordEnding {
  api::EndedBy by = api::EndedBy::kNobody;  // It goes on after all.
  bool operator==(const RecordEnding&) const = default;
};
struct RecordTerminated {
  bool operator==(const RecordTerminated&) const = default;
};
struct Release {  // Writes the id to the release record, so that the sweep spares it.
  std::string id;
  api::DeletionPolicy policy = api::DeletionPolicy::kLeave;
  bool operator==(const Release&) const = default;
};
struct Leave {  // Heartbeats end, then the lease is made as long as it can be.
  std::string id;
  bool operator==(const Leave&) const = default;
};
struct RemoveFinalizer {
  bool operator==(const RemoveFinalizer&) const = default;
};
struct DeleteObject {
  bool operator==(const DeleteObject&) const = default;
};
struct Keep {  // All is as wanted; `until`: something is due then.
  std::optional<base::WallTime> until = {};
  base::Moment ask_at = base::Moment::max();  // Its executor is due then.
  bool operator==(const Keep&) const = default;
};
struct Wait {
  std::string reason;  // Of the catalogue.
  std::string why;
  base::Milliseconds again{2'000};
  bool stalled = false;  // Only a change of the resource, the provider or a credential may help.
  bool operator==(const Wait&) const = default;
};

// The one step this pass takes; the next pass sees what came of it.
using Action =
    std::variant<Look, RecordIntent, CountRefusal, Create, Bind, Extend, Prepare, AskExecutor,
                 AskActivity, QuiesceIdle, RecordIncarnation, Resumed, RecordRun, RecordPausedBy,
                 Pause, Connect, Kill, RecordEnding, RecordTerminated, Release, Leave,
                 RemoveFinalizer, DeleteObject, Keep, Wait>;

// Chooses the step that brings `seen.actual` closer to `seen.wanted`. Pure.
Action decide(const Observation& seen);

// The word of an action, for logs and events.
std::string_view name_of(const Action& action);
// It changes something at the provider or inside a sandbox.
bool mutates(const Action& action);

}  // namespace controller
