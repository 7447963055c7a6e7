#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/line/options.h"
#include "libs/base/result.h"
#include "libs/kube/config.h"

// Which of the two a command speaks to: a folder with a standalone controller, or a cluster.
namespace cli {

struct Place {
  std::filesystem::path state = {};
  std::optional<kube::Config> cluster = {};  // Instead of the folder.
};

// Why there is none, and how the command ends.
struct Nowhere : base::Error {
  Exit exit = kUsage;
};

struct Surroundings {
  std::string state = {};  // $SANDFLEET_STATE
  kube::Surroundings kube = {};
  std::string sandbox = {}, socket = {}, token_file = {};  // $SANDFLEET_SANDBOX and so on
  std::string socket_of_user = {};  // In $XDG_RUNTIME_DIR, where there is one.
};
Surroundings surroundings_of_process();

// What the command line names wins over the environment: --state; --kubeconfig or --context;
// SANDFLEET_STATE; then the kubeconfig that kubectl would use. Flags that mean nothing there are
// refused.
base::Result<Place, Nowhere> choose_place(const Options& options, const Surroundings& around);

}  // namespace cli
