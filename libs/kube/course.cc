#include "libs/kube/course.h"

#include <algorithm>

#include "libs/base/back_off.h"
#include "libs/kube/watch.h"

namespace kube {

using base::Milliseconds;

namespace {

bool may_pass(const Refusal& refusal) {
  return refusal.code == base::ErrorCode::kUnavailable ||
         refusal.code == base::ErrorCode::kRateLimited;
}

// One turn: what became of a leg, and what follows.
class Turn {
 public:
  Turn(const Course& course, const CourseSettings& settings, double chance)
      : course_(course), settings_(settings), chance_(chance) {}

  Move after_list(const Listed& listed) {
    if (!listed.continue_token.empty()) return go(ListPage{listed.continue_token});
    course_.stream_failures = 0;
    return watch_from(listed.resource_version);
  }

  Move after_refused_page(const ListPage& page, const Refusal& refusal) {
    if (page.continue_token.empty()) return fail(list(), refusal);
    if (refusal.reason == Reason::kExpired) return go(ListPage{.whole = true});
    // The pages so far are not lost while the token lives.
    return fail(may_pass(refusal) ? Leg(page) : list(), refusal);
  }

  Move after_refused_stream(const Refusal& refusal) {
    const bool lacking = refusal.reason == Reason::kInvalid;
    if (lacking || ++course_.stream_failures >= kStreamFailuresMax) course_.streams = false;
    return lacking ? go(list()) : fail(list(), refusal);
  }

  Move after_probe(const Outcome& outcome) {
    if (const auto* refused = std::get_if<Refused>(&outcome))
      return fail(Probe{}, refused->refusal);
    const auto& listed = std::get<Listed>(outcome);
    if (is_older(listed.resource_version, course_.resource_version) != true)
      return watch_from(course_.resource_version);
    course_.resource_version.clear();
    return go(list());
  }

  Move after_watch(const WatchEnded& watch) {
    course_.resource_version = watch.resource_version;
    const bool worked = watch.progressed || watch.lasted >= settings_.brief;
    if (worked) course_.failures = course_.expirations = 0;
    const Leg again = Watch{watch.resource_version};
    if (!watch.refusal) return worked ? go(again) : fail(again);
    const Refusal& refusal = *watch.refusal;
    if (refusal.reason == Reason::kNoAnswer) return fail(Probe{}, refusal);
    const bool expired = refusal.reason == Reason::kExpired;
    if (!expired && may_pass(refusal)) return fail(again, refusal);
    course_.resource_version.clear();
    // The first time at once: nothing is wrong with a server that forgets.
    if (expired && course_.expirations++ == 0) return go(list());
    return fail(list(), refusal);
  }

 private:
  Leg list() const {
    return settings_.streaming && course_.streams ? Leg(ListStream{}) : Leg(ListPage{});
  }
  Move go(Leg leg) { return {course_, std::move(leg)}; }
  Move watch_from(const std::string& resource_version) {
    course_.resource_version = resource_version;
    return go(Watch{resource_version});
  }
  Move fail(Leg leg, const std::optional<Refusal>& refusal = std::nullopt) {
    ++course_.failures;
    const base::BackOff back_off{settings_.backoff_min, settings_.backoff_max};
    Milliseconds delay = back_off.after(course_.failures, chance_);
    if (refusal && refusal->retry_after) delay = std::max(delay, *refusal->retry_after);
    return {course_, std::move(leg), delay};
  }

  Course course_;
  const CourseSettings& settings_;
  const double chance_;
};

}  // namespace

Move first_move(const CourseSettings& settings) {
  return {{}, settings.streaming ? Leg(ListStream{}) : Leg(ListPage{})};
}

Move next_move(const Course& course, const Leg& leg, const Outcome& outcome,
               const CourseSettings& settings, double chance) {
  Turn turn(course, settings, chance);
  if (std::holds_alternative<Watch>(leg)) return turn.after_watch(std::get<WatchEnded>(outcome));
  if (std::holds_alternative<Probe>(leg)) return turn.after_probe(outcome);
  if (const auto* listed = std::get_if<Listed>(&outcome)) return turn.after_list(*listed);
  const Refusal& refusal = std::get<Refused>(outcome).refusal;
  if (const auto* page = std::get_if<ListPage>(&leg))
    return turn.after_refused_page(*page, refusal);
  return turn.after_refused_stream(refusal);
}

}  // namespace kube
