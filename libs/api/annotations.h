#pragma once

#include <string>
#include <string_view>

#include "libs/api/sandbox.h"
#include "libs/base/strings.h"

namespace api {

// Another value than before asks the controller to look at the object again, at once, whatever it
// believes or holds back.
inline constexpr std::string_view kReconcileAnnotation = "sandfleet.dev/reconcile-requested-at";

// Another value than before asks for a Sandbox that is paused because it idled: it is resumed. That
// the annotation goes, or is emptied, asks for nothing.
inline constexpr std::string_view kWakeAnnotation = "sandfleet.dev/wake-requested-at";

inline std::string annotation_of(const Metadata& metadata, std::string_view name) {
  const auto found = metadata.annotations.find(std::string(name));
  return found == metadata.annotations.end() ? std::string() : found->second;
}
// The newest such requests; empty when there was none.
inline std::string request_to_look(const Metadata& metadata) {
  return annotation_of(metadata, kReconcileAnnotation);
}
inline std::string request_to_wake(const Metadata& metadata) {
  // What differs beyond what status has room for makes no difference.
  return std::string(base::cut(annotation_of(metadata, kWakeAnnotation), kWakeSeenBytesMax));
}

// It was found idle and paused for that, its spec still wants so, and nobody has asked for it
// since.
inline bool stays_idle(const Sandbox& sandbox) {
  const std::string request = request_to_wake(sandbox.metadata);
  return sandbox.status.paused_by == PausedBy::kIdle && sandbox.spec.lifecycle.idle &&
         (request.empty() || request == sandbox.status.wake_seen);
}
// What the spec wants, unless it idles meanwhile.
inline DesiredState desired_now(const Sandbox& sandbox) {
  const bool idles = sandbox.spec.desired_state == DesiredState::kRunning && stays_idle(sandbox);
  return idles ? DesiredState::kPaused : sandbox.spec.desired_state;
}

}  // namespace api
