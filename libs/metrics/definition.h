#pragma once

#include <string>
#include <vector>

#include "libs/base/result.h"

namespace metrics {

enum class Kind { kCounter, kGauge, kHistogram };
std::string_view to_word(Kind kind);

// One metric as it is documented and exposed. A program declares all of its own in one table.
struct Definition {
  Kind kind;
  std::string name, help;  // The help is a sentence.
  std::vector<std::string> labels = {};
  std::vector<double> buckets = {};  // Upper bounds, ascending; of histograms only.
};
using Table = std::vector<Definition>;

// `count` bounds, each `factor` times the one before.
std::vector<double> exponential_buckets(double first, double factor, int count);

// Prometheus' naming rules and ours: counters end in _total, nothing else does; no label may name a
// single object, for then the number of series grows with the fleet.
base::Result<base::Done> check(const Table& table);

// The table of a program's metrics for its documentation, sorted by name.
std::string to_markdown(const Table& table);

}  // namespace metrics
