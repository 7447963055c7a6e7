#pragma once

#include <string>

#include "libs/base/json.h"

namespace kube {

// A Sandbox that runs, as an API server prints it.
inline base::Json running_sandbox(int number) {
  const std::string n = std::to_string(number);
  base::Json conditions = base::Json::array();
  const auto add = [&](const char* type, const char* status, const char* reason,
                       const char* message = "") {
    conditions.push_back({{"type", type},
                          {"status", status},
                          {"reason", reason},
                          {"message", message},
                          {"observedGeneration", 1},
                          {"lastTransitionTime", "2026-11-29T17:46:31Z"}});
  };
  add("Ready", "True", "Ready", "run 1");
  add("Reconciling", "False", "Ready");
  add("Stalled", "False", "Ready");
  add("Bound", "True", "Bound");
  add("Prepared", "True", "Prepared");
  add("Paused", "False", "Running");
  add("CapacityAvailable", "True", "Ready");
  return {{"apiVersion", "sandfleet.dev/v1alpha1"},
          {"kind", "Sandbox"},
          {"metadata",
           {{"name", "agent-" + n},
            {"namespace", "team-a"},
            {"uid", "0e3f8a52-8d0b-4d1c-9a6e-" + std::string(12 - n.size(), '0') + n},
            {"resourceVersion", std::to_string(100'000 + number)},
            {"generation", 1},
            {"creationTimestamp", "2026-11-29T17:46:31Z"},
            {"finalizers", {"sandfleet.dev/e2b-sandbox"}},
            {"annotations",
             {{"sandfleet.dev/attempt",
               R"({"epoch":1,"nonce":"0123456789abcdef0123456789abcdef","number":0})"},
              {"kubectl.kubernetes.io/last-applied-configuration", std::string(2'000, 'x')}}},
            {"managedFields", {{{"manager", "kubectl"}, {"fieldsV1", std::string(4'000, 'x')}}}}}},
          {"spec", {{"providerRef", {{"name", "default"}}}, {"template", {{"id", "base"}}}}},
          {"status",
           {{"observedGeneration", 1},
            {"conditions", conditions},
            {"state", "Running"},
            {"sandboxID", "i0123456789abcdefghij"},
            {"epoch", 1},
            {"incarnation", 1},
            {"run", 1},
            {"startTime", "2026-11-29T17:46:31Z"},
            {"envdVersion", "0.6.13"},
            {"endpoint", {{"url", "https://sandboxes.e2b.test"}, {"routing", "Subdomain"}}}}}};
}

}  // namespace kube
