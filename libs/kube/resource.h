#pragma once

#include <string>
#include <string_view>

#include "libs/api/sandbox.h"

namespace kube {

// One kind of object as the API server serves it.
struct Resource {
  std::string group;  // Empty: the core group.
  std::string version, plural, kind;
  bool namespaced = true;
  bool operator==(const Resource&) const = default;
};

inline const Resource kSandboxes{"sandfleet.dev", "v1alpha1", "sandboxes", "Sandbox"};
inline const Resource kSandboxProviders{"sandfleet.dev", "v1alpha1", "sandboxproviders",
                                        "SandboxProvider", false};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline const Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
inline const Resource kSecrets{"", "v1", "secrets", "Secret"};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};

std::string api_version_of(const Resource& resource);  // "sandfleet.dev/v1alpha1", "v1"

// The path of all objects in a namespace; of all there are when `space` is empty.
std::string path_of_all(const Resource& resource, const std::string& space);
// The path of one; `subresource`: "status", "scale", "token", ...
std::string path_of(const Resource& resource, const api::Key& key,
                    std::string_view subresource = {});

}  // namespace kube
