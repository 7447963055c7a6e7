#include "cli/line/place.h"

#include <cstdlib>

namespace cli {

using base::Error;
using base::error;
using base::ErrorCode;
using base::Result;

namespace {

Nowhere nowhere(Error why, Exit exit) { return Nowhere{std::move(why), exit}; }

Nowhere misused(const char* flag, const char* why) {
  return nowhere(error(ErrorCode::kInvalid, flag, " ", why), kUsage);
}

Result<Place, Nowhere> folder(const Options& options, const std::string& state) {
  if (options.force_conflicts)
    return misused("--force-conflicts",
                   "is for a cluster, where others may own a field; leave it out here");
  return Place{.state = state};
}

Result<Place, Nowhere> cluster(const Options& options, const Surroundings& around) {
  auto config = kube::find_config({.kubeconfig = options.kubeconfig, .context = options.context},
                                  around.kube);
  if (!config && config.error().code == ErrorCode::kNotFound && options.kubeconfig.empty())
    return nowhere(
        error(ErrorCode::kNotFound,
              "nowhere to look: give --state DIR or set SANDFLEET_STATE for a standalone "
              "controller, or name a cluster by --kubeconfig FILE, KUBECONFIG or ~/.kube/config"),
        kUsage);
  if (!config) return nowhere(config.error(), kFailed);
  if (options.remove_manifest)
    return misused("--remove-manifest",
                   "is for a folder of manifests; in a cluster, remove the file where you keep it");
  return Place{.cluster = *std::move(config)};
}

}  // namespace

Surroundings surroundings_of_process() {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found ? found : "");
  };
  std::string socket_of_user = value("XDG_RUNTIME_DIR");
  if (!socket_of_user.empty()) socket_of_user += "/sandfleet/agentd.sock";
  std::error_code ignored;
  if (!std::filesystem::exists(socket_of_user, ignored)) socket_of_user.clear();
  return {.state = value("SANDFLEET_STATE"),
          .kube = kube::surroundings_of_process(),
          .sandbox = value("SANDFLEET_SANDBOX"),
          .socket = value("SANDFLEET_SOCKET"),
          .token_file = value("SANDFLEET_TOKEN_FILE"),
          .socket_of_user = std::move(socket_of_user)};
}

Result<Place, Nowhere> choose_place(const Options& options, const Surroundings& around) {
  const bool names_cluster = !options.kubeconfig.empty() || !options.context.empty();
  if (!options.state.empty() && names_cluster)
    return misused("--state", "is a folder, --kubeconfig and --context name a cluster: give one");
  if (!options.state.empty()) return folder(options, options.state);
  if (!names_cluster && !around.state.empty()) return folder(options, around.state);
  return cluster(options, around);
}

}  // namespace cli
