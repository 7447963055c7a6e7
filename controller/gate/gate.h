#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "controller/gate/room.h"
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
// the time that is left, without being sent; a create for which there is no room has no time of its
// own, for the hold may end early.
class Gate {
 public:
  // `room_again` is called when creates that were held back may be tried before their time.
  Gate(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock, GateOptions options = {},
       std::function<void()> room_again = {});
  ~Gate();

  // The provider, as seen by calls of that priority. Lives as long as the gate.
  e2b::Cloud& as(Priority priority);
  // Calls that are sent on a condition alone. It is asked when the call is let in, however long
  // that stood in line, and its error is the call's. It may not go through the gate itself: it has
  // one of few places.
  using Condition = std::function<base::Result<base::Done>()>;
  base::Result<e2b::PauseAnswer> pause_if(const Condition& condition, const std::string& id,
                                          std::stop_token stop);
  base::Result<e2b::KillAnswer> kill_if(const Condition& condition, const std::string& id,
                                        std::stop_token stop);

  // Why a create would not be sent now for want of room, with the time that is left.
  std::optional<base::Error> no_room() const;
  // A create was not sent for want of room.
  static bool kept_for_room(const e2b::CreateFailure& failure);
  std::size_t waiting() const;  // Calls that are not let in yet.

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
  void hold(base::Milliseconds retry_after);
  std::optional<base::Error> held_back() const;
  base::Result<Room::Sent> leave_for_room();
  void learn_of_room(const Room::Sent& sent,
                     const base::Result<e2b::Handle, e2b::CreateFailure>& made);
  void something_ended();
  std::size_t first_in_line() const;
  void let_in(Priority priority);

  const std::shared_ptr<e2b::Cloud> cloud_;
  const base::Clock& clock_;
  const GateOptions options_;
  const std::function<void()> room_again_;
  std::array<std::unique_ptr<View>, kPriorities> views_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<std::size_t, kPriorities> waiting_ = {};
  std::array<std::size_t, kPriorities> passed_over_ = {};  // Since one of that class went last.
  std::size_t in_flight_ = 0;
  base::Moment held_until_ = {};
  Room room_;
};

}  // namespace controller
