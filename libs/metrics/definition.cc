#include "libs/metrics/definition.h"

#include <algorithm>
#include <set>

#include "libs/base/strings.h"

namespace metrics {
namespace {

using base::ErrorCode;

bool is_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::ranges::all_of(
      name, [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

base::Result<base::Done> check_label(const Definition& metric, const std::string& label) {
  static const std::set<std::string, std::less<>> kPerObject = {"namespace", "uid", "sandbox",
                                                                "sandbox_id", "pod"};
  if (!is_name(label) || label.starts_with("__") || label == "le") {
    return base::error(ErrorCode::kInvalid, metric.name, ": \"", label,
                       "\" is not usable as a label name");
  }
  if (kPerObject.contains(label)) {
    return base::error(ErrorCode::kInvalid, metric.name, ": label \"", label,
                       "\" names single objects; count them by a bounded word instead");
  }
  return base::Done{};
}

base::Result<base::Done> check_one(const Definition& metric) {
  if (!is_name(metric.name)) {
    return base::error(ErrorCode::kInvalid, "\"", metric.name,
                       "\" is not a metric name: use a-z, 0-9 and _, a letter first");
  }
  if (metric.help.empty() || !metric.help.ends_with('.')) {
    return base::error(ErrorCode::kInvalid, metric.name, ": the help must be a sentence");
  }
  const bool total = metric.name.ends_with("_total");
  if (total != (metric.kind == Kind::kCounter)) {
    return base::error(ErrorCode::kInvalid, metric.name,
                       ": counters, and only they, end in _total");
  }
  if (metric.buckets.empty() == (metric.kind == Kind::kHistogram)) {
    return base::error(ErrorCode::kInvalid, metric.name,
                       ": histograms, and only they, have buckets");
  }
  if (std::ranges::adjacent_find(metric.buckets, std::greater_equal<>{}) != metric.buckets.end()) {
    return base::error(ErrorCode::kInvalid, metric.name, ": the buckets must ascend");
  }
  for (const auto& label : metric.labels) CHECK_OK(check_label(metric, label));
  return base::Done{};
}

}  // namespace

std::string_view to_word(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  return "";
}

std::vector<double> exponential_buckets(double first, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= factor) bounds.push_back(bound);
  return bounds;
}

base::Result<base::Done> check(const Table& table) {
  std::set<std::string, std::less<>> names;
  for (const auto& metric : table) {
    CHECK_OK(check_one(metric));
    if (!names.insert(metric.name).second) {
      return base::error(ErrorCode::kInvalid, metric.name, " is declared twice");
    }
  }
  return base::Done{};
}

std::string to_markdown(const Table& table) {
  Table sorted = table;
  std::ranges::sort(sorted, {}, &Definition::name);
  std::string text = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n";
  for (const auto& metric : sorted) {
    text += "| `" + metric.name + "` | " + std::string(to_word(metric.kind)) + " | " +
            base::join(metric.labels, ", ") + " | " + metric.help + " |\n";
  }
  return text;
}

}  // namespace metrics
