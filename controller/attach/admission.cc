#include "controller/attach/admission.h"

#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

constexpr base::Milliseconds kAskAgain{1'000};

Refused not_yet(const api::Sandbox& sandbox, std::string what) {
  const api::Condition* ready = api::find_condition(sandbox.status, api::condition::kReady);
  const bool says_why = ready && ready->reason != api::reason::kIdle;
  if (says_why && !ready->reason.empty()) what += ": " + ready->reason;
  if (says_why && !ready->message.empty()) what += ", " + ready->message;
  return {NoEntry::kNotReady, std::move(what), kAskAgain};
}

// Who was here before may have woken it, or its owner.
Verdict judge_idle(const api::Sandbox& sandbox, const std::string& name) {
  const bool idles = api::stays_idle(sandbox);
  if (idles && !sandbox.spec.lifecycle.wake_on_attach)
    return Refused{NoEntry::kPaused, name + " is paused because it idled"};
  Refused meanwhile = not_yet(sandbox, name + " was paused because it idled, and is being woken");
  if (idles) return Wakes{std::move(meanwhile)};
  return meanwhile;
}

}  // namespace

int http_status_of(NoEntry reason) {
  switch (reason) {
    case NoEntry::kInvalid:
      return 400;
    case NoEntry::kDenied:
      return 403;
    case NoEntry::kNotFound:
      return 404;
    case NoEntry::kPaused:
      return 409;
    case NoEntry::kEnded:
      return 410;
    case NoEntry::kRateLimited:
      return 429;
    case NoEntry::kNotReady:
    case NoEntry::kUnavailable:
      return 503;
  }
  return 503;
}

Verdict judge(const api::Sandbox* sandbox, const api::Key& asked) {
  const std::string name = "Sandbox " + api::to_text(asked);
  if (!sandbox) return Refused{NoEntry::kNotFound, "there is no " + name};
  if (sandbox->deleting()) return Refused{NoEntry::kEnded, name + " is being deleted"};
  if (sandbox->status.ended_by != api::EndedBy::kNobody ||
      sandbox->spec.desired_state == api::DesiredState::kTerminated)
    return Refused{NoEntry::kEnded, name + " has ended for good: create another"};
  if (sandbox->spec.desired_state == api::DesiredState::kPaused)
    return Refused{NoEntry::kPaused, name + " is paused: set spec.desiredState to Running"};
  if (sandbox->status.paused_by == api::PausedBy::kIdle) return judge_idle(*sandbox, name);
  const api::Condition* ready = api::find_condition(sandbox->status, api::condition::kReady);
  const bool is_ready = ready && ready->status == "True" && !sandbox->status.sandbox_id.empty() &&
                        sandbox->status.run > 0 &&
                        sandbox->status.paused_by == api::PausedBy::kNobody;
  if (!is_ready) return not_yet(*sandbox, name + " is not ready");
  return Admitted{};
}

}  // namespace controller
