#pragma once

#include "libs/kube/client.h"

// What a person reads when a cluster did not do as asked: what was tried, what came back, and what
// to do about it. Pure.
namespace cli {

inline constexpr char kInstall[] =
    "install the chart (helm install sandfleet charts/sandfleet), or the definitions alone "
    "(kubectl apply -f crds/)";

base::Error explain(const kube::Refusal& refusal, const kube::Config& config);

// The path itself is not served: our resources are not defined there, or not in our version, or it
// is no Kubernetes API server. explain_unserved() tells which, by what GET /apis gave.
bool is_unserved(const kube::Refusal& refusal);
base::Error explain_unserved(const kube::Refusal& refusal, const kube::Config& config,
                             const kube::Answer<base::Json>& groups);

}  // namespace cli
