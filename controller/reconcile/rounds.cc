#include "controller/reconcile/rounds.h"

#include <algorithm>
#include <utility>

#include "libs/base/back_off.h"

namespace controller {

Rounds::Rounds(RoundsOptions options, base::Moment now, std::function<double()> chance)
    : options_(options), chance_(std::move(chance)), bucket_(options.asks, now) {}

std::shared_ptr<void> Rounds::take_turn(base::Moment now) {
  std::lock_guard lock(mutex_);
  const long under_way = turns_.use_count() - 1;
  if (under_way >= options_.at_once || !bucket_.take(now)) return nullptr;
  return turns_;
}

base::Moment Rounds::next(base::Moment now) { return after(now, options_.every, 0.25); }
base::Moment Rounds::put_off(base::Moment now) { return after(now, options_.put_off, 0.5); }
base::Moment Rounds::again(base::Moment now, int failures) {
  return after(now, base::BackOff{options_.put_off, options_.every}.after(failures), 0.25);
}

base::Moment Rounds::after(base::Moment now, base::Milliseconds time, double scatter) {
  std::lock_guard lock(mutex_);
  const double share = 1 + scatter * (2 * chance_() - 1);
  return now + std::chrono::duration_cast<base::Milliseconds>(time * share);
}

ExecutorView heard(ExecutorView view, const base::Result<wire::Health>& answer, base::Moment now,
                   base::Moment next) {
  view.ask_at = next;
  if (!answer && answer.error().code == base::ErrorCode::kNotFound) {
    if (++view.closed >= kGoneAfter)
      view.kind = ExecutorView::Kind::kGone;
    else
      view.ask_at = now + kAskAgain;
    return view;
  }
  view.closed = 0;
  if (answer)
    view.health = *answer;
  else if (answer.error().code == base::ErrorCode::kDenied)
    view.kind = ExecutorView::Kind::kRefuses;
  return view;
}

ExecutorView due_at_once(ExecutorView view, base::Moment now) {
  if (view.closed == 0) view.ask_at = std::min(view.ask_at, now);
  return view;
}

}  // namespace controller
