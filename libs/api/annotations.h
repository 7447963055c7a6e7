#pragma once

#include <string>
#include <string_view>

#include "libs/api/sandbox.h"

namespace api {

// Another value than before asks the controller to look at the object again, at once, whatever it
// believes or holds back.
inline constexpr std::string_view kReconcileAnnotation = "sandfleet.dev/reconcile-requested-at";

// The newest such request; empty when there was none.
inline std::string request_to_look(const Metadata& metadata) {
  const auto found = metadata.annotations.find(std::string(kReconcileAnnotation));
  return found == metadata.annotations.end() ? std::string() : found->second;
}

}  // namespace api
