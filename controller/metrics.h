#pragma once

#include "controller/heartbeat/engine.h"
#include "controller/operations/pool.h"
#include "controller/reconcile/reconciler.h"
#include "controller/sweep/sweeper.h"
#include "libs/kube/queue.h"
#include "libs/metrics/registry.h"

namespace controller {

// What every workqueue_* and controller_runtime_* series calls the one queue and its controller.
inline constexpr char kQueueName[] = "sandbox";

double seconds(base::Milliseconds time);

// Every metric of the program.
metrics::Table metrics_table();

// Counts what the reconciler does.
class MetricsObserver final : public Observer {
 public:
  explicit MetricsObserver(metrics::Registry& registry) : registry_(registry) {}
  void acted(const Action& action, const Outcome& outcome) override;
  void became_ready(base::Milliseconds after) override;
  void drifted(std::string_view kind) override;
  void paused_for_idleness() override;
  void woke() override;

 private:
  metrics::Registry& registry_;
};

// The same calls, counted and timed by operation and outcome.
std::shared_ptr<e2b::Cloud> measured(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock,
                                     metrics::Registry& registry);

struct Gauges {
  const kube::Queue& queue;
  const Engine& engine;
  const Pool& pool;
  const Memories& memories;
  const api::ResourceStore& store;
};
// Sets, before each exposition, what is measured rather than counted.
void watch(metrics::Registry& registry, const Gauges& gauges);

}  // namespace controller
