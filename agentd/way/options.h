#pragma once

#include <string>
#include <vector>

#include "libs/base/flags.h"

namespace agentd {

// Where sandboxes are declared, and who is asked for ways into them.
struct WayOptions {
  // Beside a controller on a folder of manifests.
  std::string state;
  std::string attach_socket;
  // In a cluster, which it is without them.
  std::string kubeconfig, context;
  std::vector<std::string> namespaces;
  std::string attach_url, attach_ca;

  bool has_folder() const { return !state.empty() || !attach_socket.empty(); }
};

void declare(base::Flags& flags, WayOptions& options);
// Why these do not go together; empty when they do.
std::string contradiction_in(const WayOptions& options);

}  // namespace agentd
