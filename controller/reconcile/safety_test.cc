#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "controller/reconcile/report.h"
#include "controller/reconcile/testing/scenes.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using api::DeletionPolicy;
using api::DesiredState;

// One dimension of what can be seen: its values, each a change of the scene with a name.
struct Value {
  const char* name;
  std::function<void(Observation&)> apply;
};
using Dimension = std::vector<Value>;

Value desired(const char* name, DesiredState state) {
  return {name, [=](Observation& seen) { seen.wanted.spec.desired_state = state; }};
}
Value policy(const char* name, DeletionPolicy value) {
  return {name, [=](Observation& seen) { seen.wanted.spec.deletion_policy = value; }};
}
void bind(Observation& seen) {
  seen.wanted.status.sandbox_id = "sb-1";
  seen.wanted.status.epoch = seen.wanted.status.incarnation = seen.wanted.status.run = 1;
  seen.wanted.status.start_time = scene::kWall;
}
void record(Observation& seen) {
  seen.wanted.metadata.finalizers = {std::string(api::kFinalizer)};
  seen.wanted.metadata.annotations[std::string(api::kAttemptAnnotation)] =
      api::to_text(scene::kAttempt);
}
void see_executor(Observation& seen, ExecutorView::Kind kind, std::int64_t run) {
  seen.memory.executor = {.kind = kind,
                          .sandbox_id = "sb-1",
                          .started_at = scene::kWall,
                          .health = {.instance = "i", .identity = {"uid-1", 1, 1, run}}};
}

const Dimension kDesires = {desired("Running", DesiredState::kRunning),
                            desired("Paused", DesiredState::kPaused),
                            desired("Terminated", DesiredState::kTerminated)};
const Dimension kPolicies = {policy("Kill", DeletionPolicy::kKill),
                             policy("Pause", DeletionPolicy::kPause),
                             policy("Leave", DeletionPolicy::kLeave)};
const Dimension kDeletions = {
    {"alive", [](Observation&) {}},
    {"deleting", [](Observation& seen) { seen.wanted.metadata.deleted = seen.wall; }}};
const Dimension kEndings = {
    {"going", [](Observation&) {}},
    {"ended", [](Observation& seen) { seen.wanted.status.ended_by = api::EndedBy::kMaxLifetime; }},
    {"terminated", [](Observation& seen) {
       seen.wanted.status.ended_by = api::EndedBy::kUser;
       seen.wanted.status.terminated_time = scene::kWall;
     }}};
const Dimension kRecords = {{"nothing", [](Observation&) {}},
                            {"recorded_here",
                             [](Observation& seen) {
                               record(seen);
                               seen.memory.recorded_nonce = "n1";
                             }},
                            {"recorded_before", [](Observation& seen) { record(seen); }},
                            {"unanswered",
                             [](Observation& seen) {
                               record(seen);
                               seen.memory.recorded_nonce = "n1";
                               seen.memory.unclear_send_ended = scene::kNow - 30s;
                               seen.memory.sent =
                                   Sent{scene::kAttempt, "",
                                        e2b::CreateFailure{{base::ErrorCode::kUnavailable, ""}}};
                             }},
                            {"made",
                             [](Observation& seen) {
                               record(seen);
                               seen.memory.recorded_nonce = "n1";
                               seen.memory.made = "sb-1";
                               seen.memory.sent = Sent{scene::kAttempt, "sb-1"};
                             }},
                            {"bound",
                             [](Observation& seen) {
                               record(seen);
                               bind(seen);
                             }},
                            {"bound_released",
                             [](Observation& seen) {
                               record(seen);
                               bind(seen);
                               seen.memory.released = seen.memory.left = "sb-1";
                             }},
                            {"bound_paused_by_user", [](Observation& seen) {
                               record(seen);
                               bind(seen);
                               seen.wanted.status.paused_by = api::PausedBy::kUser;
                             }}};

void see(Observation& seen, std::vector<Sighting> sandboxes, base::Moment when = scene::kNow) {
  seen.memory.listed = Listed{when, std::move(sandboxes)};
}
const Dimension kWitnesses = {
    {"none", [](Observation&) {}},
    {"clean_list", [](Observation& seen) { see(seen, {}); }},
    {"stale_list",
     [](Observation& seen) {
       see(seen, {});
       seen.memory.changed = scene::kNow + 1s;
     }},
    {"running", [](Observation& seen) { see(seen, {scene::sandbox("sb-1")}); }},
    {"paused", [](Observation& seen) { see(seen, {scene::sandbox("sb-1", e2b::State::kPaused)}); }},
    {"odd", [](Observation& seen) { see(seen, {scene::sandbox("sb-1", e2b::State::kOther)}); }},
    {"with_surplus",
     [](Observation& seen) {
       see(seen, {scene::sandbox("sb-1"), scene::sandbox("sb-2", e2b::State::kRunning, "n0")});
     }},
    {"missed_once",
     [](Observation& seen) {
       see(seen, {});
       seen.memory.got["sb-1"] = Got{scene::kNow, {}, 1, scene::kNow};
     }},
    {"proven_absent",
     [](Observation& seen) {
       see(seen, {});
       seen.memory.got["sb-1"] = Got{scene::kNow, {}, 2, scene::kNow - 5s};
     }},
    {"killed_unproven",
     [](Observation& seen) {
       see(seen, {scene::sandbox("sb-1")}, scene::kNow - 5s);
       seen.memory.killed["sb-1"] = seen.memory.changed = scene::kNow;
     }},
    {"killed_proven",
     [](Observation& seen) {
       see(seen, {});
       seen.memory.killed["sb-1"] = seen.memory.changed = scene::kNow - 1s;
       seen.memory.got["sb-1"] = Got{scene::kNow, {}, 1, scene::kNow};
     }},
    {"killed_unseen",
     [](Observation& seen) {
       see(seen, {});
       seen.memory.send_ended = scene::kNow - 10s;
       seen.memory.killed["sb-1"] = seen.memory.changed = scene::kNow - 1s;
       seen.memory.got["sb-1"] = Got{scene::kNow, {}, 1, scene::kNow};
     }},
    {"anothers", [](Observation& seen) {
       see(seen, {});
       auto other = scene::sandbox("sb-1");
       other.uid = "uid-2";
       seen.memory.got["sb-1"] = Got{scene::kNow, other};
     }}};
const Dimension kExecutors = {
    {"unseen", [](Observation&) {}},
    {"answers", [](Observation& seen) { see_executor(seen, ExecutorView::Kind::kAnswering, 1); }},
    {"rolled_back",
     [](Observation& seen) { see_executor(seen, ExecutorView::Kind::kAnswering, 0); }},
    {"silent", [](Observation& seen) { see_executor(seen, ExecutorView::Kind::kSilent, 0); }},
    {"refuses", [](Observation& seen) { see_executor(seen, ExecutorView::Kind::kRefuses, 0); }},
    {"gone", [](Observation& seen) { see_executor(seen, ExecutorView::Kind::kGone, 1); }},
    {"due", [](Observation& seen) {
       see_executor(seen, ExecutorView::Kind::kAnswering, 1);
       seen.memory.executor.ask_at = scene::kNow;
     }}};
const Dimension kTroubles = {
    {"calm", [](Observation&) {}},
    {"busy", [](Observation& seen) { seen.operation = "Create"; }},
    {"no_provider",
     [](Observation& seen) {
       seen.provider.reset();
       seen.provider_problem = base::Error{base::ErrorCode::kNotFound, "gone"};
       seen.provider_reason = "ProviderNotFound";
     }},
    {"said_done",
     [](Observation& seen) {
       const bool paused = seen.wanted.spec.desired_state == DesiredState::kPaused;
       seen.memory.held = {.failures = 1,
                           .step = paused ? "Pause" : "Connect",
                           .until = scene::kNow + 10s,
                           .reason = "NoEffect",
                           .generation = 1,
                           .deleting = seen.wanted.deleting(),
                           .open = true};
     }},
    {"held", [](Observation& seen) {
       seen.memory.held = {.failures = 2,
                           .step = "Kill",
                           .until = scene::kNow + 10s,
                           .reason = "ProviderUnavailable",
                           .generation = 1,
                           .deleting = seen.wanted.deleting()};
     }}};

// What must hold of the step that is picked, whatever was seen; the name of what does not.
struct Rule {
  const char* name;
  std::function<bool(const Observation&, const Action&, const Report&)> holds;
};

template <typename Step>
bool is(const Action& action) {
  return std::holds_alternative<Step>(action);
}
bool ended(const Observation& seen) {
  return seen.wanted.status.ended_by != api::EndedBy::kNobody ||
         seen.wanted.spec.desired_state == DesiredState::kTerminated;
}
bool clean(const Observation& seen, const std::string& but = "") {
  return seen.memory.listed &&
         std::ranges::all_of(seen.memory.listed->sandboxes,
                             [&](const auto& sandbox) { return sandbox.id == but; });
}
std::string target_of(const Action& action) {
  return std::visit(
      [](const auto& step) -> std::string {
        if constexpr (requires { step.id; }) return step.id;
        return {};
      },
      action);
}

const Rule kRules[] = {
    {"I-FIN, I-INTENT: create only with finalizer and attempt on record",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Create>(action) || (!seen.wanted.metadata.finalizers.empty() &&
                                      api::attempt_of(seen.wanted.metadata).has_value());
     }},
    {"I-ONE: create only when nothing bound, made, unanswered or listed can be ours",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Create>(action) ||
              (seen.wanted.status.sandbox_id.empty() && seen.memory.made.empty() && clean(seen) &&
               !seen.memory.unclear_send_ended && !seen.memory.recorded_nonce.empty());
     }},
    {"create only what is wanted",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Create>(action) || (!seen.wanted.deleting() && !ended(seen));
     }},
    {"bind only what is unbound",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Bind>(action) || seen.wanted.status.sandbox_id.empty();
     }},
    {"kill only what is deleted or ended",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Kill>(action) || seen.wanted.deleting() || ended(seen);
     }},
    {"I-ORPHANPOLICY: what is left or paused on deletion is never killed",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Kill>(action) || ended(seen) ||
              seen.wanted.spec.deletion_policy == DeletionPolicy::kKill ||
              target_of(action) != seen.wanted.status.sandbox_id ||
              std::holds_alternative<ProvenAbsent>(seen.actual);
     }},
    {"an ending is on record before its kill",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Kill>(action) || seen.wanted.deleting() ||
              seen.wanted.status.ended_by != api::EndedBy::kNobody;
     }},
    {"I-DEL: the finalizer goes only with a clean list, and never on doubt",
     [](const Observation& seen, const Action& action, const Report&) {
       if (!is<RemoveFinalizer>(action) || seen.wanted.status.terminated_time) return true;
       const bool kept = seen.memory.released == seen.wanted.status.sandbox_id &&
                         seen.wanted.spec.deletion_policy != DeletionPolicy::kKill;
       const std::string spared = kept ? seen.wanted.status.sandbox_id : "";
       return clean(seen, spared) && !std::holds_alternative<Unknown>(seen.actual);
     }},
    {"I-DEL: what no look has shown goes only when its create has settled",
     [](const Observation& seen, const Action& action, const Report&) {
       const Memory& memory = seen.memory;
       const bool unseen = std::ranges::any_of(
           memory.killed, [&](const auto& kill) { return !memory.shown.contains(kill.first); });
       return !(is<RemoveFinalizer>(action) || is<RecordTerminated>(action)) || !unseen ||
              seen.wanted.status.terminated_time ||
              memory.listed->started >= memory.send_ended.value_or(seen.began) + 90s;
     }},
    {"the finalizer goes only when deletion was asked for",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<RemoveFinalizer>(action) || seen.wanted.deleting();
     }},
    {"I-FOREIGN: nothing is done to what is another's",
     [](const Observation& seen, const Action& action, const Report&) {
       return !std::holds_alternative<Foreign>(seen.actual) || !mutates(action) ||
              target_of(action) != seen.wanted.status.sandbox_id;
     }},
    {"pause only what is to be paused",
     [](const Observation& seen, const Action& action, const Report&) {
       const bool by_policy =
           seen.wanted.deleting() && seen.wanted.spec.deletion_policy == DeletionPolicy::kPause;
       return !is<Pause>(action) || by_policy ||
              seen.wanted.spec.desired_state == DesiredState::kPaused;
     }},
    {"resume only what is to run",
     [](const Observation& seen, const Action& action, const Report&) {
       return !is<Connect>(action) || (!seen.wanted.deleting() && !ended(seen) &&
                                       seen.wanted.spec.desired_state == DesiredState::kRunning);
     }},
    {"not knowing changes nothing of a bound one",
     [](const Observation& seen, const Action& action, const Report&) {
       const bool unsure = std::holds_alternative<Unknown>(seen.actual) ||
                           std::holds_alternative<Missing>(seen.actual);
       return seen.wanted.status.sandbox_id.empty() || !unsure || seen.wanted.deleting() ||
              ended(seen) || !mutates(action);
     }},
    {"a look inside is for what runs, and is to run",
     [](const Observation& seen, const Action& action, const Report& news) {
       const auto* found = std::get_if<Found>(&seen.actual);
       return !is<AskExecutor>(action) ||
              (found && found->info.state == e2b::State::kRunning && !seen.wanted.deleting() &&
               !ended(seen) && seen.wanted.spec.desired_state == DesiredState::kRunning &&
               !news.write);
     }},
    {"nothing is done while an operation runs, or without a provider",
     [](const Observation& seen, const Action& action, const Report&) {
       return !(seen.operation || seen.provider_problem) || !mutates(action);
     }},
    {"a step that failed is held back",
     [](const Observation& seen, const Action& action, const Report&) {
       const HeldBack& held = seen.memory.held;
       const bool other = held.open && held.step != name_of(action);
       return held.failures == 0 || other || !mutates(action) || is<Resumed>(action);
     }},
    {"a terminated one stays as it is",
     [](const Observation& seen, const Action& action, const Report&) {
       return !seen.wanted.status.terminated_time || !mutates(action);
     }},
    {"I-OBSGEN, I-SPEC: Ready=True only when kept or the run is recorded",
     [](const Observation& seen, const Action& action, const Report& news) {
       const auto* ready = api::find_condition(news.status, "Ready");
       return ready && ready->observed_generation == seen.wanted.metadata.generation &&
              (ready->status != "True" || is<Keep>(action) || is<AskExecutor>(action) ||
               is<RecordRun>(action) || is<RecordPausedBy>(action));
     }},
    {"whoever does not act says when to look again, or that only a change can help",
     [](const Observation&, const Action& action, const Report& news) {
       const auto* wait = std::get_if<Wait>(&action);
       return !wait || wait->stalled || news.requeue.after.has_value();
     }},
};

const Dimension* const kAll[] = {&kPolicies,  &kDeletions, &kEndings, &kRecords,
                                 &kWitnesses, &kExecutors, &kTroubles};

// Every combination of every value with one desire; executors only where something
// is bound and nothing is in the way.
void for_each_scene(const Value& desire,
                    const std::function<void(const std::string&, const Observation&)>& visit) {
  std::vector<std::size_t> at(std::size(kAll), 0);
  while (true) {
    Observation seen = scene::fresh();
    desire.apply(seen);
    std::string name = desire.name;
    for (std::size_t i = 0; i < std::size(kAll); ++i) {
      const Value& value = (*kAll[i])[at[i]];
      value.apply(seen);
      name += std::string(" ") + value.name;
    }
    const bool no_executor = seen.memory.executor.kind == ExecutorView::Kind::kUnknown;
    const bool calm = at.back() == 0;
    if (no_executor || (calm && !seen.wanted.status.sandbox_id.empty()))
      visit(name, scene::looked(seen));
    std::size_t i = 0;
    while (i < at.size() && ++at[i] == kAll[i]->size()) at[i++] = 0;
    if (i == at.size()) return;
  }
}

class Safety : public testing::TestWithParam<std::size_t> {};

TEST_P(Safety, HoldsForEveryStateDeletionAndPolicy) {
  std::size_t scenes = 0, failures = 0;
  std::set<std::string_view> picked;
  for_each_scene(kDesires[GetParam()], [&](const std::string& name, const Observation& seen) {
    const Action action = decide(seen);
    const Report news = report(seen, action, {});
    ++scenes;
    picked.insert(name_of(action));
    for (const Rule& rule : kRules) {
      if (rule.holds(seen, action, news)) continue;
      if (++failures <= 20)
        ADD_FAILURE() << rule.name << "\n  seen: " << name << "\n  picked: " << name_of(action)
                      << " " << target_of(action);
    }
  });
  EXPECT_GT(scenes, 8'000u);
  EXPECT_EQ(failures, 0u);
  // The rules are only worth what the scenes reach.
  static const std::set<std::string_view> kReached[] = {
      {"Create", "Bind", "Kill", "RemoveFinalizer", "Pause", "Connect", "Prepare",
       "RecordIncarnation", "AskExecutor"},
      {"Create", "Bind", "Kill", "RemoveFinalizer", "Pause", "RecordPausedBy"},
      {"Kill", "RemoveFinalizer", "RecordEnding", "RecordTerminated"}};
  for (const auto& name : kReached[GetParam()]) EXPECT_TRUE(picked.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(, Safety, testing::Range<std::size_t>(0, 3),
                         [](const auto& info) { return std::string(kDesires[info.param].name); });

}  // namespace
}  // namespace controller
