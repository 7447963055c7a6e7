#pragma once

#include <chrono>
#include <ostream>

#include "controller/reconcile/decide.h"

// Observations for tests, a step at a time.
namespace controller::scene {

inline constexpr base::Moment kBegan{std::chrono::hours(1)};
inline constexpr base::Moment kNow = kBegan + std::chrono::minutes(10);
inline constexpr base::WallTime kWall{std::chrono::hours(24 * 365 * 56)};
inline const api::Attempt kAttempt{"n1", 1, 0};

inline Sighting sandbox(const std::string& id, e2b::State state = e2b::State::kRunning,
                        const std::string& nonce = "n1", std::int64_t epoch = 1) {
  return {.id = id,
          .state = state,
          .uid = "uid-1",
          .nonce = nonce,
          .epoch = epoch,
          .started_at = kWall};
}

// Just applied: nothing was looked at, nothing recorded.
inline Observation fresh() {
  Observation seen;
  seen.wanted.metadata = {.key = {"default", "a"}, .uid = "uid-1", .created = kWall};
  seen.wanted.spec.template_id = "base";
  seen.provider = api::SandboxProvider{};
  seen.began = kBegan;
  seen.now = kNow;
  seen.wall = kWall + std::chrono::minutes(10);
  return seen;
}

inline Observation& looked(Observation& seen) {
  seen.actual = actual_of(seen);
  return seen;
}
template <typename Change>
Observation with(Observation seen, Change change) {
  change(seen);
  return looked(seen);
}
inline Observation listed(Observation seen, std::vector<Sighting> sandboxes,
                          base::Moment when = kNow) {
  seen.memory.listed = Listed{when, std::move(sandboxes)};
  return looked(seen);
}
inline Observation got(Observation seen, const std::string& id, std::optional<Sighting> info,
                       int misses = 1, base::Moment when = kNow, base::Moment first_miss = kNow) {
  seen.memory.got[id] = Got{when, std::move(info), misses, first_miss};
  return looked(seen);
}

// Finalizer and attempt are on record.
inline Observation recorded(bool by_us = true) {
  Observation seen = fresh();
  seen.wanted.metadata.finalizers = {std::string(api::kFinalizer)};
  seen.wanted.metadata.annotations[std::string(api::kAttemptAnnotation)] = api::to_text(kAttempt);
  if (by_us) seen.memory.recorded_nonce = kAttempt.nonce;
  return listed(seen, {});
}

// Bound to sb-1, which ran when it was last listed; no executor was seen yet.
inline Observation bound(std::vector<Sighting> sandboxes = {sandbox("sb-1")}) {
  Observation seen = recorded(false);
  seen.wanted.status.sandbox_id = "sb-1";
  seen.wanted.status.epoch = 1;
  seen.wanted.status.incarnation = 1;
  return listed(seen, std::move(sandboxes));
}

// Bound, prepared and Ready in run 1.
inline Observation ready() {
  Observation seen = bound();
  seen.wanted.status.run = 1;
  seen.wanted.status.start_time = kWall;
  seen.memory.executor = {.kind = ExecutorView::Kind::kAnswering,
                          .sandbox_id = "sb-1",
                          .started_at = kWall,
                          .health = {.instance = "i-1", .identity = {"uid-1", 1, 1, 1}}};
  return looked(seen);
}

// What is remembered of one that was created here and runs, when nothing is under way.
inline Memory at_rest(const std::string& id, const std::string& uid) {
  const std::string nonce(32, 'n');
  Memory memory{.recorded_nonce = nonce,
                .sent = Sent{.attempt = {nonce, 1, 0}, .id = id},
                .made = id,
                .send_ended = kNow,
                .shown = {id},
                .handle = e2b::Handle{.id = id,
                                      .envd_version = "0.6.13",
                                      .envd_access_token = std::string(64, 't'),
                                      .traffic_access_token = std::string(64, 'u')},
                .bound_here = true,
                .extended = id};
  memory.got[id] = {.started = kNow,
                    .info = Sighting{.id = id,
                                     .uid = uid,
                                     .nonce = nonce,
                                     .epoch = 1,
                                     .started_at = kWall,
                                     .end_at = kWall,
                                     .envd_version = "0.6.13"}};
  memory.executor = {.kind = ExecutorView::Kind::kAnswering,
                     .sandbox_id = id,
                     .started_at = kWall,
                     .health = {std::string(32, 'i'), "1.2.3", {uid, 1, 1, 1}},
                     .ask_at = kNow};
  memory.told = key_of_run(memory.executor.health.instance, kWall);
  return memory;
}

inline Observation wanting(Observation seen, api::DesiredState desired) {
  seen.wanted.spec.desired_state = desired;
  return looked(seen);
}
inline Observation deleting(Observation seen,
                            api::DeletionPolicy policy = api::DeletionPolicy::kKill) {
  seen.wanted.metadata.deleted = seen.wall;
  seen.wanted.spec.deletion_policy = policy;
  return looked(seen);
}

// What is to be done about one.
struct Case {
  const char* name;
  Observation seen;
  Action want;
};
inline void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

}  // namespace controller::scene
