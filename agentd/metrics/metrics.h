#pragma once

#include <cstddef>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/metrics/registry.h"

namespace agentd {

// Every metric of the program.
metrics::Table metrics_table();

// What is carried, by which way it runs.
class Traffic {
 public:
  Traffic(metrics::Registry& registry, std::string_view direction);
  void count(std::size_t bytes);

 private:
  metrics::Counter frames_, bytes_;
};

// What agentd counts of its links; series that are met with each frame are kept at hand.
class Counts {
 public:
  explicit Counts(metrics::Registry& registry);

  void connected();
  void let_in(base::Milliseconds after_hello);
  void asked(std::string_view result);
  void dialled(bool again, std::string_view result);
  void welcomed(std::string_view session);  // What became of it.
  void told(std::string_view reason);       // A harness, why its link ends.
  void links(std::size_t open);

  Traffic to_executor, to_harness;

 private:
  metrics::Registry& registry_;
};

}  // namespace agentd
