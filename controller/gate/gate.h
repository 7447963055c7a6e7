#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"

namespace controller {

// Who goes first when a provider can take no more at once; a look-up has the priority of the verb
// that it serves.
enum class Priority { kHeartbeat, kDelete, kPause, kResume, kCreate, kPoll };
inline constexpr std::size_t kPriorities = 6;

struct GateOptions {
  std::size_t in_flight_max = 64;         // Calls at once, heartbeats apart.
  std::size_t passed_over_max = 16;       // Calls that a waiting class lets go first: its share.
  base::Milliseconds quota_hold{30'000};  // After a quota 429, until the next create is tried.
};

// What every call to one provider goes through, one per credential. A Retry-After holds all of
// them back; a quota 429 holds creates alone. A call that is held back fails as kRateLimited with
// the time that is left, without being sent.
class Gate {
 public:
  Gate(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock, GateOptions options = {});
  ~Gate();

  // The provider, as seen by calls of that priority. Lives as long as the gate.
  e2b::Cloud& as(Priority priority);

  struct Stats {
    std::size_t in_flight = 0, waiting = 0;
    std::uint64_t throttled_by_rate = 0, throttled_by_quota = 0;
    base::Milliseconds held_for{0};
  };
  Stats stats() const;

  // A told wait; from then on every call is held back until it is over.
  void hold(base::Milliseconds retry_after);
  void hold_creates();
  // A create worked, or something of ours was killed: there may be room again.
  void free_creates();
  bool creates_held() const;  // The provider had no room, a short time ago.
  std::optional<base::Error> held_back(Priority priority) const;

  // A place for one call; given back when destroyed.
  class Place {
   public:
    Place(Gate& gate, Priority priority, std::stop_token stop);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool taken() const { return taken_; }

   private:
    Gate& gate_;
    const Priority priority_;
    bool taken_ = false;
  };

 private:
  class View;
  std::size_t first_in_line() const;
  void let_in(Priority priority);

  const std::shared_ptr<e2b::Cloud> cloud_;
  const base::Clock& clock_;
  const GateOptions options_;
  std::array<std::unique_ptr<View>, kPriorities> views_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<std::size_t, kPriorities> waiting_ = {};
  std::array<std::size_t, kPriorities> passed_over_ = {};  // Since one of that class went last.
  std::size_t in_flight_ = 0;
  base::Moment held_until_ = {}, creates_held_until_ = {};
  std::uint64_t by_rate_ = 0, by_quota_ = 0;
};

}  // namespace controller
