#pragma once

#include "libs/kube/client.h"

// What a person reads when a cluster did not do as asked: what was tried, what came back, and what
// to do about it.
namespace kube {

inline constexpr char kInstall[] =
    "install the chart (helm install sandfleet charts/sandfleet), or the definitions alone "
    "(kubectl apply -f crds/)";

// Pure.
base::Error explain(const Refusal& refusal, const Config& config);

// The path itself is not served: our resources are not defined there, or not in our version, or it
// is no Kubernetes API server. explain_unserved() tells which, by what GET /apis gave. Pure.
bool is_unserved(const Refusal& refusal);
base::Error explain_unserved(const Refusal& refusal, const Config& config,
                             const Answer<base::Json>& groups);

// Either of the two; asks the server what it does serve, where that is the question.
base::Error explained(const Refusal& refusal, Client& client);

}  // namespace kube
