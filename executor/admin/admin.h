#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/activity/activity.h"
#include "executor/admin/marker.h"
#include "executor/admin/pause_guard.h"
#include "libs/aio/background.h"
#include "libs/aio/http_server.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/wire/admin.h"
#include "libs/wire/known_time.h"

namespace executor {

inline constexpr base::Milliseconds kClockLookEvery{500};

// The token of "Authorization: Bearer <token>"; nothing when the head has none.
std::optional<std::string> bearer_token(const aio::HttpHead& head);

// Who has to know what the controller says of pauses. Told before the controller is answered.
class PauseListener {
 public:
  virtual ~PauseListener() = default;
  virtual void quiesced() = 0;
  virtual void thawed() = 0;  // No pause came.
  virtual void resumed(const wire::Resumed& told) = 0;
};

// What the controller may ask of an executor (libs/wire/admin.h). One loop's state, no lock.
//   token -> health | activity | quiesce | resumed | time -> proof
class Admin {
 public:
  // Without a marker what `resumed` said ends with this process. `meters`: of the programs inside.
  Admin(wire::StartSecrets secrets, std::optional<Marker> marker, const base::Clock& clock,
        std::vector<CpuMeter> meters = {});

  aio::Task<> serve(std::shared_ptr<aio::HttpExchange> exchange);
  // Lets a quiesce lapse, and sees what goes on; run beside the server, or have somebody look now
  // and then.
  aio::Task<> watch_the_clock();
  void look_at_the_clock();
  // Takes from the first `resumed` what it would have to wait for; run beside the server.
  aio::Task<> settle_marker(aio::Background& background);
  const wire::Health& health() const { return health_; }
  wire::KnownTime& time() { return time_; }
  Activity& activity() { return activity_; }  // For whoever carries requests to tell.
  void tell(PauseListener& listener) { listener_ = &listener; }

 private:
  struct Answer {
    int status = 200;
    base::Json body;
  };
  struct Refusal {
    base::Json body;
    bool of_our_own = false;  // A token that was ours has ended: that is proven like any answer.
  };
  // Nothing: it is admitted.
  std::optional<Refusal> refusal_of(const aio::HttpHead& head);
  // Nothing where no proof is asked for.
  std::optional<std::string> prove(const aio::HttpHead& head, const std::string& body,
                                   const std::string& answer) const;
  Answer answer(const std::string& method, const std::string& path, const std::string& body);
  Answer quiesce(const base::Json& body);
  Answer resumed(const base::Json& body);
  Answer take_time(const base::Json& body);
  Answer tell_health() const;
  Answer tell_activity();
  void thaw();
  void adopt_marker();

  wire::StartSecrets secrets_;
  std::optional<Marker> marker_;
  const base::Clock& clock_;
  wire::Health health_;
  PauseGuard guard_;
  PauseListener* listener_ = nullptr;
  wire::KnownTime time_;
  Activity activity_;
};

}  // namespace executor
