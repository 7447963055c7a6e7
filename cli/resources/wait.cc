#include "cli/resources/wait.h"

#include "libs/api/reasons.h"

namespace cli {
namespace {

std::string in_words(const api::Condition& condition) {
  return condition.type + "=" + condition.status + " " + condition.reason +
         (condition.message.empty() ? "" : ": " + condition.message);
}

bool is_reached(api::DesiredState wished, const api::Sandbox& sandbox) {
  const auto holds = [&](std::string_view type) {
    const auto* condition = api::find_condition(sandbox.status, type);
    return condition != nullptr && condition->status == "True" &&
           condition->observed_generation >= sandbox.metadata.generation;
  };
  switch (wished) {
    case api::DesiredState::kRunning:
      return holds(api::condition::kReady);
    case api::DesiredState::kPaused:
      return holds(api::condition::kPaused);
    case api::DesiredState::kTerminated:
      return sandbox.status.terminated_time.has_value();
  }
  return false;
}

}  // namespace

bool has_ended_for_good(const api::Sandbox& sandbox) {
  switch (sandbox.status.ended_by) {
    case api::EndedBy::kNobody:
      return false;
    case api::EndedBy::kIdle:
      return sandbox.status.terminated_time.has_value();
    case api::EndedBy::kUser:
    case api::EndedBy::kShutdownTime:
    case api::EndedBy::kMaxLifetime:
      return true;
  }
  return false;
}

Progress progress_to(api::DesiredState wished, const std::optional<api::Sandbox>& sandbox) {
  using Verdict = Progress::Verdict;
  if (!sandbox) return {Verdict::kNotYet, "the controller has not taken it yet"};
  if (sandbox->spec.desired_state != wished) {
    return {Verdict::kNotYet, "the controller has not taken the change yet"};
  }
  const auto* ready = api::find_condition(sandbox->status, api::condition::kReady);
  if (wished != api::DesiredState::kTerminated && has_ended_for_good(*sandbox)) {
    return {Verdict::kEnded, ready == nullptr ? "" : in_words(*ready), true};
  }
  if (is_reached(wished, *sandbox)) return {Verdict::kReached, ""};
  const auto* stalled = api::find_condition(sandbox->status, api::condition::kStalled);
  if (stalled != nullptr && stalled->status == "True" &&
      stalled->observed_generation >= sandbox->metadata.generation) {
    return {Verdict::kStalled, in_words(*stalled)};
  }
  if (ready == nullptr) return {Verdict::kNotYet, "it has no condition yet"};
  return {Verdict::kNotYet, in_words(*ready), true};
}

Progress progress_to(const api::SandboxSpec& wished, const std::optional<api::Sandbox>& sandbox) {
  if (sandbox && sandbox->spec != wished) {
    return {Progress::Verdict::kNotYet, "the controller has not taken the change yet"};
  }
  return progress_to(wished.desired_state, sandbox);
}

Progress progress_to_absence(const std::string& uid, const std::optional<api::Sandbox>& sandbox,
                             const std::optional<std::string>& refusal) {
  using Verdict = Progress::Verdict;
  if (!sandbox || sandbox->metadata.uid != uid) return {Verdict::kReached, ""};
  if (refusal) return {Verdict::kRefused, *refusal, true};
  if (!sandbox->deleting()) {
    return {Verdict::kNotYet, "the controller has not taken the request yet"};
  }
  const auto* deleting = api::find_condition(sandbox->status, api::condition::kDeleting);
  if (deleting == nullptr) return {Verdict::kNotYet, "it is being deleted"};
  return {Verdict::kNotYet, in_words(*deleting), true};
}

}  // namespace cli
