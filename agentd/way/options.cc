#include "agentd/way/options.h"

#include "agentd/dial/dial.h"

namespace agentd {

void declare(base::Flags& flags, WayOptions& options) {
  flags.text("--state", options.state,
             "state folder of a controller on this machine, whose Sandboxes these are; without it: "
             "a cluster's");
  flags.text("--attach-socket", options.attach_socket,
             "folder: where that controller is asked for the way into a sandbox; else attach.sock "
             "in its state folder");
  flags.text(
      "--kubeconfig", options.kubeconfig,
      "cluster: file that says which one and who we are; else $KUBECONFIG, ~/.kube/config, or "
      "the pod's own account");
  flags.text("--context", options.context,
             "cluster: the kubeconfig's context; else its current one");
  flags.texts(
      "--namespace", options.namespaces,
      "cluster: whose Sandboxes to watch, else those of all namespaces; may be given several "
      "times");
  flags.text(
      "--attach-url", options.attach_url,
      "cluster: https URL of the controller's attach service, which is asked for the way into "
      "a sandbox");
  flags.text(
      "--attach-ca", options.attach_ca,
      "cluster: file of the authorities to believe there, read anew when it changes; else the "
      "system's");
}

std::string contradiction_in(const WayOptions& options) {
  const bool cluster = !options.kubeconfig.empty() || !options.context.empty() ||
                       !options.namespaces.empty() || !options.attach_url.empty() ||
                       !options.attach_ca.empty();
  if (options.has_folder()) {
    if (cluster) return "--state is a folder; flags of a cluster do not go with it";
    return options.state.empty() ? "--attach-socket goes with --state" : "";
  }
  if (options.attach_url.empty())
    return "give --state, the state folder of a controller on this machine, or --attach-url, where "
           "the one of a cluster is asked";
  const auto place = place_of(options.attach_url);
  if (!place || !place->tls) return "--attach-url " + options.attach_url + ": give an https URL";
  return "";
}

}  // namespace agentd
