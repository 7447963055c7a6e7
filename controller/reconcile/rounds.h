#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "controller/reconcile/observation.h"
#include "libs/base/clock.h"
#include "libs/base/token_bucket.h"

namespace controller {

struct RoundsOptions {
  base::Milliseconds every{300'000};   // From one answer to the next ask.
  base::Milliseconds put_off{15'000};  // When there is no turn for one that is due.
  base::Rate asks{.burst = 10, .refill = base::Milliseconds(20)};  // Of all sandboxes together.
  long at_once = 4;  // Asks under way: a data plane that hangs takes no more threads than these.
};

// When executors that were heard long ago are asked again whether they are well. Times are
// scattered, and turns are few, so that a fleet that falls due at once is asked a little at a time.
// Safe to call from many threads.
class Rounds {
 public:
  // `chance` gives numbers from 0 to less than 1.
  Rounds(RoundsOptions options, base::Moment now, std::function<double()> chance);

  // The right to ask one executor, held until the answer; null when it is not to be asked now.
  std::shared_ptr<void> take_turn(base::Moment now);
  // When one that was heard at `now` is due again: a quarter sooner or later than `every`.
  base::Moment next(base::Moment now);
  // The same for one that got no turn.
  base::Moment put_off(base::Moment now);
  // The same after so many failures in a row: each twice as late, from `put_off` to `every`.
  base::Moment again(base::Moment now, int failures);

 private:
  base::Moment after(base::Moment now, base::Milliseconds time, double scatter);

  const RoundsOptions options_;
  const std::function<double()> chance_;
  std::mutex mutex_;
  base::TokenBucket bucket_;
  const std::shared_ptr<void> turns_ = std::make_shared<int>();  // Shared by those under way.
};

// What an answer to such an ask makes of the view. Not knowing proves nothing: only an executor
// that refuses us, and a sandbox that says twice that nobody listens on the executor's port, change
// what we believe. The serving child of an executor that lives is back within a second.
ExecutorView heard(ExecutorView view, const base::Result<wire::Health>& answer, base::Moment now,
                   base::Moment next);
// The same, due at once: somebody found no way in. Not where it is about to be asked again anyway.
ExecutorView due_at_once(ExecutorView view, base::Moment now);
inline constexpr int kGoneAfter = 2;
inline constexpr base::Milliseconds kAskAgain{2'000};

}  // namespace controller
