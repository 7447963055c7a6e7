#include "libs/metrics/registry.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

namespace metrics {
namespace {

using Labels = std::map<std::string, std::string>;

[[noreturn]] void end_because(std::string_view name, std::string_view why) {
  std::fprintf(stderr, "metric %.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
               static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace

void Counter::add(double by) { series_->Increment(by); }
double Counter::value() const { return series_->Value(); }
void Gauge::set(double value) { series_->Set(value); }
void Gauge::add(double by) { series_->Increment(by); }
double Gauge::value() const { return series_->Value(); }
void Histogram::observe(double value) { series_->Observe(value); }

struct Registry::State {
  struct Declared {
    Definition definition;
    prometheus::Family<prometheus::Counter>* counters = nullptr;
    prometheus::Family<prometheus::Gauge>* gauges = nullptr;
    prometheus::Family<prometheus::Histogram>* histograms = nullptr;
    std::set<std::vector<std::string>> series = {};
  };

  prometheus::Registry registry;
  std::mutex mutex;
  std::map<std::string, Declared, std::less<>> declared;
  std::vector<std::function<void()>> refreshers;

  void declare(const Definition& metric);
  Declared& find(std::string_view name, Kind kind, std::size_t labels);
  static Labels labels_of(Declared& metric, const std::vector<std::string>& values);
};

void Registry::State::declare(const Definition& metric) {
  Declared made{.definition = metric};
  switch (metric.kind) {
    case Kind::kCounter:
      made.counters =
          &prometheus::BuildCounter().Name(metric.name).Help(metric.help).Register(registry);
      break;
    case Kind::kGauge:
      made.gauges =
          &prometheus::BuildGauge().Name(metric.name).Help(metric.help).Register(registry);
      break;
    case Kind::kHistogram:
      made.histograms =
          &prometheus::BuildHistogram().Name(metric.name).Help(metric.help).Register(registry);
      break;
  }
  declared.emplace(metric.name, std::move(made));
}

Registry::State::Declared& Registry::State::find(std::string_view name, Kind kind,
                                                 std::size_t labels) {
  const auto found = declared.find(name);
  if (found == declared.end()) end_because(name, "is not declared in the table");
  if (found->second.definition.kind != kind) end_because(name, "is declared as another type");
  if (found->second.definition.labels.size() != labels) {
    end_because(name, "is used with another number of labels than declared");
  }
  return found->second;
}

Labels Registry::State::labels_of(Declared& metric, const std::vector<std::string>& values) {
  const bool known = metric.series.contains(values);
  const bool other = !known && metric.series.size() >= kSeriesMax;
  if (!known && !other) metric.series.insert(values);
  Labels labels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    labels[metric.definition.labels[i]] = other ? "other" : values[i];
  }
  return labels;
}

Registry::Registry(const Table& table) : state_(std::make_unique<State>()) {
  const auto checked = check(table);
  if (!checked) end_because("table", checked.error().message);
  for (const auto& metric : table) {
    state_->declare(metric);
    // What has no labels exists from the start, at zero: a rate needs a first value.
    if (!metric.labels.empty()) continue;
    if (metric.kind == Kind::kCounter) counter(metric.name);
    if (metric.kind == Kind::kHistogram) histogram(metric.name);
  }
}

Registry::~Registry() = default;

Counter Registry::counter(std::string_view name, const std::vector<std::string>& label_values) {
  std::lock_guard lock(state_->mutex);
  auto& metric = state_->find(name, Kind::kCounter, label_values.size());
  return Counter(&metric.counters->Add(State::labels_of(metric, label_values)));
}

Gauge Registry::gauge(std::string_view name, const std::vector<std::string>& label_values) {
  std::lock_guard lock(state_->mutex);
  auto& metric = state_->find(name, Kind::kGauge, label_values.size());
  return Gauge(&metric.gauges->Add(State::labels_of(metric, label_values)));
}

Histogram Registry::histogram(std::string_view name, const std::vector<std::string>& label_values) {
  std::lock_guard lock(state_->mutex);
  auto& metric = state_->find(name, Kind::kHistogram, label_values.size());
  return Histogram(
      &metric.histograms->Add(State::labels_of(metric, label_values), metric.definition.buckets));
}

void Registry::before_exposition(std::function<void()> refresh) {
  std::lock_guard lock(state_->mutex);
  state_->refreshers.push_back(std::move(refresh));
}

std::string Registry::expose() {
  std::vector<std::function<void()>> refreshers;
  {
    std::lock_guard lock(state_->mutex);
    refreshers = state_->refreshers;
  }
  for (const auto& refresh : refreshers) refresh();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, state_->registry.Collect());
  return std::move(out).str();
}

}  // namespace metrics
