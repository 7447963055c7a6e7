#include "libs/kube/course.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

const CourseSettings kSettings{.streaming = false};

Refusal refusal(Reason reason, ErrorCode code, std::optional<base::Milliseconds> after = {}) {
  Refusal made{{code, "no", after}};
  made.reason = reason;
  return made;
}
const Refusal kExpired = refusal(Reason::kExpired, ErrorCode::kConflict);
const Refusal kNoAnswer = refusal(Reason::kNoAnswer, ErrorCode::kUnavailable);
const Refusal kBusy = refusal(Reason::kTooManyRequests, ErrorCode::kRateLimited, 7s);
const Refusal kForbidden = refusal(Reason::kForbidden, ErrorCode::kDenied);
const Refusal kInvalid = refusal(Reason::kInvalid, ErrorCode::kInvalid);

WatchEnded watched(bool progressed, base::Milliseconds lasted, std::optional<Refusal> why = {}) {
  return {"9", progressed, lasted, std::move(why)};
}
Course known(int failures = 0) { return {.resource_version = "7", .failures = failures}; }
Course known_to_9(int failures = 0) { return {.resource_version = "9", .failures = failures}; }
Course nothing(int failures = 0) { return {.failures = failures}; }

Course forgotten(int failures, int expirations) {
  return {.failures = failures, .expirations = expirations};
}
Course known_but_forgotten() { return {.resource_version = "7", .expirations = 1}; }

struct Case {
  const char* name;
  Course course;
  Leg leg;
  Outcome outcome;
  Course then;
  Leg next;
  base::Milliseconds after{0};
};

void expect(const Case& each, const CourseSettings& settings) {
  const Move move = next_move(each.course, each.leg, each.outcome, settings, 0);
  EXPECT_EQ(move.course, each.then) << each.name;
  EXPECT_EQ(move.leg, each.next) << each.name;
  EXPECT_EQ(move.after, each.after) << each.name;
}

TEST(Course, FollowsTheServerThroughPagesAndWatches) {
  const Case kCases[] = {
      // Lists.
      {"a page of several", nothing(), ListPage{}, Listed{"7", "more"}, nothing(),
       ListPage{"more"}},
      {"the last page", nothing(), ListPage{"more"}, Listed{"7"}, known(), Watch{"7"}},
      {"a list does not yet prove that things work", nothing(3), ListPage{}, Listed{"7"}, known(3),
       Watch{"7"}},
      {"a list that fails", nothing(), ListPage{}, Refused{kNoAnswer}, nothing(1), ListPage{},
       500ms},
      {"a list that fails again", nothing(1), ListPage{}, Refused{kNoAnswer}, nothing(2),
       ListPage{}, 1s},
      {"a list that fails for ever", nothing(100), ListPage{}, Refused{kNoAnswer}, nothing(101),
       ListPage{}, 30s},
      {"a server that says when", nothing(), ListPage{}, Refused{kBusy}, nothing(1), ListPage{},
       7s},
      {"a page that fails is asked for again", nothing(), ListPage{"more"}, Refused{kNoAnswer},
       nothing(1), ListPage{"more"}, 500ms},
      {"a token that expired", nothing(), ListPage{"more"}, Refused{kExpired}, nothing(),
       ListPage{.whole = true}},
      {"a token that is no good", nothing(), ListPage{"more"}, Refused{kInvalid}, nothing(1),
       ListPage{}, 500ms},
      {"a whole list", nothing(), ListPage{.whole = true}, Listed{"7"}, known(), Watch{"7"}},
      {"a whole list that fails", nothing(), ListPage{.whole = true}, Refused{kNoAnswer},
       nothing(1), ListPage{}, 500ms},
      // Watches.
      {"the server's own end", known(), Watch{"7"}, watched(true, 300s), known_to_9(), Watch{"9"}},
      {"an end after silence", known(), Watch{"7"}, watched(false, 300s), known_to_9(), Watch{"9"}},
      {"success makes up for failures", known(5), Watch{"7"}, watched(true, 0s), known_to_9(),
       Watch{"9"}},
      {"an end at once", known(), Watch{"7"}, watched(false, 0s), known_to_9(1), Watch{"9"}, 500ms},
      {"an end at once, again", known(1), Watch{"7"}, watched(false, 999ms), known_to_9(2),
       Watch{"9"}, 1s},
      {"a cut", known(), Watch{"7"}, watched(true, 60s, kNoAnswer), known_to_9(1), Probe{}, 500ms},
      {"silence for too long", known(3), Watch{"7"}, watched(false, 150s, kNoAnswer), known_to_9(1),
       Probe{}, 500ms},
      {"a cut at once", known(3), Watch{"7"}, watched(false, 0s, kNoAnswer), known_to_9(4), Probe{},
       4s},
      {"a busy server", known(), Watch{"7"}, watched(false, 0s, kBusy), known_to_9(1), Watch{"9"},
       7s},
      {"too old", known(), Watch{"7"}, watched(true, 60s, kExpired), forgotten(0, 1), ListPage{}},
      {"too old after the server was away", known(5), Watch{"7"}, watched(false, 0s, kExpired),
       forgotten(5, 1), ListPage{}},
      {"too old right after a list", known_but_forgotten(), Watch{"7"},
       watched(false, 0s, kExpired), forgotten(1, 2), ListPage{}, 500ms},
      {"success makes up for that, too", known_but_forgotten(), Watch{"7"}, watched(true, 9s),
       known_to_9(), Watch{"9"}},
      {"no rights any more", known(), Watch{"7"}, watched(false, 0s, kForbidden), nothing(1),
       ListPage{}, 500ms},
      // Probes.
      {"the server is where it was", known(1), Probe{}, Listed{"7"}, known(1), Watch{"7"}},
      {"the server is further", known(1), Probe{}, Listed{"8", "more"}, known(1), Watch{"7"}},
      {"the server was restored", known(1), Probe{}, Listed{"6"}, nothing(1), ListPage{}},
      {"the server cannot be compared", known(1), Probe{}, Listed{"x"}, known(1), Watch{"7"}},
      {"the server is still away", known(1), Probe{}, Refused{kNoAnswer}, known(2), Probe{}, 1s},
  };
  EXPECT_EQ(first_move(kSettings).leg, Leg(ListPage{}));
  for (const Case& each : kCases) expect(each, kSettings);
}

TEST(Course, ListsByStreamWhereTheServerOffersIt) {
  const CourseSettings settings{};
  const auto doubtful = [](int failures) {
    return Course{.failures = failures, .stream_failures = 1};
  };
  const Course lacking{.streams = false};
  const Course without{.failures = 2, .stream_failures = 2, .streams = false};
  const Case kCases[] = {
      {"it does", nothing(), ListStream{}, Listed{"7"}, known(), Watch{"7"}},
      {"it makes up for a failure", doubtful(1), ListStream{}, Listed{"7"}, known(1), Watch{"7"}},
      {"it does not know the word", nothing(), ListStream{}, Refused{kInvalid}, lacking,
       ListPage{}},
      {"it never says that all is said", nothing(), ListStream{}, Refused{kNoAnswer}, doubtful(1),
       ListStream{}, 500ms},
      {"nor the next time", doubtful(1), ListStream{}, Refused{kNoAnswer}, without, ListPage{}, 1s},
      {"too old", known(), Watch{"7"}, watched(true, 60s, kExpired), forgotten(0, 1), ListStream{}},
      {"too old where it lacks",
       lacking,
       Watch{"7"},
       watched(true, 60s, kExpired),
       {.expirations = 1, .streams = false},
       ListPage{}},
  };
  EXPECT_EQ(first_move(settings).leg, Leg(ListStream{}));
  for (const Case& each : kCases) expect(each, settings);
}

TEST(Course, SpreadsThoseWhoComeBack) {
  const auto after = [](double chance) {
    return next_move({}, ListPage{}, Refused{kNoAnswer}, kSettings, chance).after;
  };
  EXPECT_EQ(after(0), 500ms);
  EXPECT_EQ(after(0.5), 375ms);
  EXPECT_EQ(after(1), 250ms);
}

}  // namespace
}  // namespace kube
