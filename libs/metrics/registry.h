#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libs/metrics/definition.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace metrics {

// Handles are small values, valid as long as their Registry, safe to use from any thread.
class Counter {
 public:
  explicit Counter(prometheus::Counter* series) : series_(series) {}
  void add(double by = 1);  // Never negative.
  double value() const;

 private:
  prometheus::Counter* series_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* series) : series_(series) {}
  void set(double value);
  void add(double by);
  double value() const;

 private:
  prometheus::Gauge* series_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* series) : series_(series) {}
  void observe(double value);

 private:
  prometheus::Histogram* series_;
};

// Series of one metric; label values beyond are counted under "other", so that an unforeseen word
// (a status code that a peer invents) never fills the memory.
inline constexpr std::size_t kSeriesMax = 500;

// The metrics of one program. Asking for a name that its table does not declare, with another kind
// or another number of label values, is a bug and ends the program. Safe to share between threads.
class Registry {
 public:
  explicit Registry(const Table& table);  // The table satisfies check().
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The series of these label values, in the order of the table; made at zero on first use.
  Counter counter(std::string_view name, const std::vector<std::string>& label_values = {});
  Gauge gauge(std::string_view name, const std::vector<std::string>& label_values = {});
  Histogram histogram(std::string_view name, const std::vector<std::string>& label_values = {});

  // Called before each exposition, to set what is measured rather than counted.
  void before_exposition(std::function<void()> refresh);

  // Prometheus' text format 0.0.4; served as kContentType.
  std::string expose();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace metrics
