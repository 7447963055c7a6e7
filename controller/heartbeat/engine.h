#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "controller/reconcile/reconciler.h"
#include "libs/base/clock.h"

namespace controller {

struct EngineOptions {
  std::size_t in_flight_max = 256;
  base::Milliseconds retry_min{500};
};

// Keeps leases: each sandbox is extended once an interval, the most urgent first. It only ever
// lengthens leases, it believes the monotonic clock alone, and a beat that fails is tried again
// soon. What it cannot judge (a sandbox that is not there) it hands to `missed`.
class Engine final : public Heartbeats {
 public:
  struct News {
    std::function<void(base::Milliseconds lateness)> sent = [](auto) {};
    std::function<void(const std::string& uid)> missed = [](const auto&) {};
  };
  Engine(const base::Clock& clock, EngineOptions options, News news);
  ~Engine() override;

  void keep(const Beat& beat) override;
  void drop(const std::string& uid) override;
  void drain(const std::string& uid) override;

  // Sends what is due; when to call again.
  base::Moment step();
  // Steps until stopped.
  void run(std::stop_token stop);

  struct Stats {
    std::size_t kept = 0, in_flight = 0;
    std::optional<base::Milliseconds> margin = {};  // The shortest lease that is left.
  };
  Stats stats() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with answers that are on their way.
};

}  // namespace controller
