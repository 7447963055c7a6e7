#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/manifests/reading.h"
#include "libs/manifests/record.h"

namespace manifests {

inline constexpr std::size_t kRemovalsMax = 10;  // More at once, and more than half, is a brake.

// One manifest as it was just read; with problems, its last good version counts.
struct ReadFile {
  std::string name;
  std::shared_ptr<const Reading> reading;
  bool folder = false;  // A folder stands where a file of that name would; it says nothing.
  bool good() const { return reading->problems.empty(); }
};

// Everything that the comparison knows: it reads neither disk nor clock.
struct Comparison {
  std::map<Id, std::shared_ptr<const Record>> records;
  std::vector<ReadFile> files;  // By name.
  std::map<Id, base::Moment> missing;
  std::set<Id> released;  // Removals that a person let through the brake.
  bool braked = false;
  base::Moment now = {};
  base::Milliseconds removal_hold{2000};
};

struct Plan {
  std::vector<const Declared*> creations;
  std::vector<const Declared*> updates;  // The document differs from the one on record.
  std::vector<Id> removals;              // Gone for long enough.
  std::vector<Id> forgotten;             // Tombstones, and deletions under way, without a document.
  std::map<Id, base::Moment> missing;
  std::vector<yaml::Problem> problems;
  std::string brake_reason;               // Not empty: too much goes at once.
  std::optional<base::Moment> next_look;  // When the next removal has held.
};

Plan compare(const Comparison& seen);

}  // namespace manifests
