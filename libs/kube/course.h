#pragma once

#include <string>
#include <variant>

#include "libs/base/clock.h"
#include "libs/kube/refusal.h"

// The course of a reflector: how it comes to know every object of a collection and then every
// change, and what it does when the server cuts it off, forgets, or goes away. Pure.
namespace kube {

// The legs.
struct ListPage {
  std::string continue_token = {};  // Empty: the first page.
  bool whole = false;               // All at once, after a continue token expired on us.
  bool operator==(const ListPage&) const = default;
};
struct ListStream {  // Every object as the first events of a watch.
  bool operator==(const ListStream&) const = default;
};
struct Watch {
  std::string resource_version;
  bool operator==(const Watch&) const = default;
};
// Asks how far the server is, after it was away: one that was restored from a backup may be behind
// what we have seen, and a watch from its future is silent.
struct Probe {
  bool operator==(const Probe&) const = default;
};
using Leg = std::variant<ListPage, ListStream, Watch, Probe>;

// How a leg ended.
struct Listed {
  std::string resource_version;
  std::string continue_token = {};  // Empty: that was all.
};
struct Refused {
  Refusal refusal;
};
struct WatchEnded {
  std::string resource_version;  // Of the last event or bookmark; else where it began.
  bool progressed = false;       // At least one came.
  base::Milliseconds lasted{0};
  std::optional<Refusal> refusal = {};
};
using Outcome = std::variant<Listed, Refused, WatchEnded>;

struct CourseSettings {
  bool streaming = true;  // Try a streaming list first.
  base::Milliseconds backoff_min{500}, backoff_max{30'000};
  base::Milliseconds brief{1'000};  // A watch that ends sooner, with nothing, is a failure.
};

// What is remembered between the legs.
struct Course {
  std::string resource_version = {};  // Everything up to here is known. Empty: nothing is.
  int failures = 0;                   // Since a watch last worked.
  int expirations = 0;                // The same, of those the ones that it was too late for.
  int stream_failures = 0;            // Streaming lists that did not come to their end, in a row.
  bool streams = true;                // The server is not known to lack streaming lists.
  bool operator==(const Course&) const = default;
};

struct Move {
  Course course;
  Leg leg;
  base::Milliseconds after{0};
};

inline constexpr int kStreamFailuresMax = 2;  // Then lists go by pages.

Move first_move(const CourseSettings& settings);
// `chance` is a random number from 0 to 1, so that many who were cut off together come back apart.
Move next_move(const Course& course, const Leg& leg, const Outcome& outcome,
               const CourseSettings& settings, double chance);

}  // namespace kube
