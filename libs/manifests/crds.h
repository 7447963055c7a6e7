#pragma once

namespace manifests {

// The YAML of crds/, as it was at build time.
extern const char* const kSandboxCrd;
extern const char* const kProviderCrd;

}  // namespace manifests
