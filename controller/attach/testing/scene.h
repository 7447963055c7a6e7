#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "controller/attach/reviewer.h"
#include "libs/api/testing/one_sandbox.h"
#include "libs/metrics/definition.h"

namespace controller {

// What the service and its door count.
inline metrics::Table attach_metrics() {
  using metrics::Kind;
  return {{Kind::kCounter, "sandfleet_attach_requests_total", "By outcome.", {"outcome"}},
          {Kind::kHistogram, "sandfleet_attach_request_duration_seconds", "How long.", {}, {1}},
          {Kind::kGauge, "sandfleet_attach_certificate_expiry_timestamp_seconds", "When."}};
}

using api::kFleetKey;
using api::OneSandbox;

struct Bearer final : Reviewer {
  std::atomic<bool> stopped = false;  // When it was last asked.

  base::Result<Caller> identify(const std::string& token, std::stop_token stop) override {
    stopped = stop.stop_requested();
    if (token == "away")
      return base::Error{base::ErrorCode::kUnavailable, "the API server is away"};
    if (token != "c4n4ry") return base::Error{base::ErrorCode::kDenied, "the token is not valid"};
    return Caller{.name = "harness"};
  }
  base::Result<base::Done> allow(const Caller&, const api::Key& key, std::stop_token) override {
    if (key.space != "team-a") return base::Error{base::ErrorCode::kDenied, "harness may not"};
    return base::Done{};
  }
};

}  // namespace controller
