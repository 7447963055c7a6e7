#include "agentd/carry/next_step.h"

#include <algorithm>

#include "libs/base/back_off.h"
#include "libs/base/strings.h"

namespace agentd {
namespace {

using wire::CloseReason;
using namespace std::chrono_literals;

constexpr base::BackOff kBackOff{250ms, 10s};
constexpr base::Milliseconds kLookAgain = 10s;  // At a sandbox that may be about to pause.
constexpr base::Milliseconds kAskLater = 5s;    // What a harness is told that is sent away.
constexpr int kDeniedMax = 2;                   // Ways in a row that an executor does not take.

// Before the next attempt.
base::Milliseconds back_off(const Situation& now) {
  return kBackOff.after(now.failures + 1, now.jitter);
}

Leave leave(CloseReason reason, const std::string& message,
            std::optional<base::Milliseconds> retry_after = {}) {
  wire::Close close{.reason = reason, .message = std::string(base::cut(message, 1024))};
  if (retry_after) close.retry_after_ms = retry_after->count();
  return {std::move(close)};
}

Rest rest(const Situation& now) {
  const bool may_look = now.way_holds && now.standing != Standing::kPaused;
  return {may_look ? std::optional(kLookAgain) : std::nullopt};
}

Step try_again(const Situation& now, bool with_the_same_way, const std::string& trouble,
               std::optional<base::Milliseconds> retry_after = {}) {
  if (now.alone >= now.patience)
    return leave(CloseReason::kBusy, "Sandbox " + to_text(now.sandbox) + ": " + trouble,
                 retry_after.value_or(kAskLater));
  const auto after = std::max(retry_after.value_or(0ms), back_off(now));
  if (with_the_same_way && now.way_holds) return Dial{after};
  return Ask{after};
}

// As far as is known; where a watch says nothing, its executor's word holds.
bool is_paused(const Situation& now) {
  return now.standing == Standing::kPaused || (now.quiesced && now.standing == Standing::kUnknown);
}

// The executor was not reached, or was lost.
Step find_it_again(const Situation& now, const std::string& trouble, bool by_another_way = false) {
  if (now.standing == Standing::kEnded)
    return leave(CloseReason::kDenied, "Sandbox " + to_text(now.sandbox) + " has ended");
  if (now.welcomed && is_paused(now) && !now.demanded && !now.unheard) return rest(now);
  // It may be elsewhere by now: the same way is good for one more attempt.
  return try_again(now, now.failures == 0 && !by_another_way, trouble);
}

Step after(const NoWay& refused, const Situation& now) {
  switch (refused.why) {
    case wire::NoEntry::kInvalid:
      return leave(CloseReason::kProtocol, refused.message);
    case wire::NoEntry::kDenied:  // What was good once has most likely ended.
      return leave(now.welcomed ? CloseReason::kExpired : CloseReason::kDenied, refused.message);
    case wire::NoEntry::kNotFound:
    case wire::NoEntry::kEnded:
      return leave(CloseReason::kDenied, refused.message);
    case wire::NoEntry::kPaused:
      if (now.welcomed && !now.demanded) return rest(now);
      return leave(
          CloseReason::kQuiesce,
          refused.message + "; resume it with `sandfleet resume " + to_text(now.sandbox) + "`",
          kAskLater);
    case wire::NoEntry::kRateLimited:
    case wire::NoEntry::kNotReady:
    case wire::NoEntry::kUnavailable:
      break;
  }
  // The way into a run that is over leads nowhere while another is on its way.
  const bool is_between_runs = refused.why == wire::NoEntry::kNotReady && is_paused(now);
  return try_again(now, !is_between_runs, refused.message, refused.retry_after);
}

Step after(const wire::Close& close, const Situation& now) {
  const std::optional<base::Milliseconds> retry_after =
      close.retry_after_ms ? std::optional(base::Milliseconds(*close.retry_after_ms))
                           : std::nullopt;
  switch (close.reason) {
    case CloseReason::kQuiesce:
      if (!now.welcomed || now.demanded || now.unheard)
        return try_again(now, false, "its executor says that it is about to pause", retry_after);
      return rest(now);
    case CloseReason::kReplaced:
    case CloseReason::kVersion:
    case CloseReason::kProtocol:
      return leave(close.reason, close.message);
    case CloseReason::kExpired:  // One that is just from the service: some clock is wrong.
      if (now.asked_now)
        return try_again(now, false, "its executor counts the token for it as ended", retry_after);
      return Ask{now.failures > 0 ? back_off(now) : 0ms};
    case CloseReason::kLost:
      return Ask{now.failures > 0 ? back_off(now) : 0ms};
    case CloseReason::kDenied:
      if (now.asked_now && now.failures >= kDeniedMax)
        return leave(CloseReason::kDenied, "the executor: " + close.message);
      return Ask{now.asked_now ? back_off(now) : 0ms};
    case CloseReason::kBusy:
      return try_again(now, true, "its executor is busy: " + close.message, retry_after);
    case CloseReason::kShutdown:
      return try_again(now, true, "its executor has just ended", retry_after);
    case CloseReason::kEnd:
    case CloseReason::kSilent:
    case CloseReason::kImpostor:
    case CloseReason::kOther:
      break;
  }
  return find_it_again(now, "its executor hung up: " + close.message);
}

Step after(const Impostor&, const Situation& now) {
  return try_again(now, false, "what answers in its executor's place has not its key");
}
Step after(const Unreachable& ended, const Situation& now) {
  return find_it_again(now, "its executor cannot be reached: " + ended.message, ended.denied);
}
Step after(const Broken& ended, const Situation& now) {
  return find_it_again(now, "its executor was lost: " + ended.message);
}

}  // namespace

Step next_step(const Ending& ending, const Situation& situation) {
  return std::visit([&](const auto& one) { return after(one, situation); }, ending);
}

}  // namespace agentd
