#include "cli/reference.h"

#include "cli/options.h"

namespace cli {

std::string reference() {
  std::string text =
      "# sandfleet\n\n"
      "What people type, about a standalone controller's folder or about a Kubernetes cluster.\n"
      "`kubectl sandfleet` is the same program: kubectl finds `kubectl-sandfleet` on PATH.\n\n"
      "Where it looks is what the command line names, else what the environment does: `--state`;\n"
      "`--kubeconfig` or `--context`; `SANDFLEET_STATE`; then the kubeconfig that kubectl would "
      "use\n"
      "(`KUBECONFIG`, `~/.kube/config`, the pod's own account). A kind may stand before the "
      "names:\n"
      "`sfb`, `sandbox`, `sandboxes` (the default) or `sfp`, `provider`, `sandboxproviders`.\n"
      "Results go to standard output, progress and warnings to standard error.\n\n"
      "| | in a folder | in a cluster |\n|---|---|---|\n"
      "| `apply` | checks the manifest and puts it into the watched folder | server-side apply as "
      "`sandfleet-cli`; fields that others set are named, and taken over by `--force-conflicts` |\n"
      "| `pause`, `resume`, `terminate` | change one word of the manifest in place, comments kept, "
      "or refuse | change `spec.desiredState` of the object that was seen, nothing else |\n"
      "| `reconcile` | leaves a request for the controller | sets the annotation "
      "`sandfleet.dev/reconcile-requested-at` |\n"
      "| `delete` | asks the controller; the manifest stays and is passed over until it changes or "
      "is applied again, unless `--remove-manifest` says otherwise | deletes the object that was "
      "seen |\n"
      "| `delete --policy` | goes with the request | is written to `spec.deletionPolicy` first |\n"
      "| `--watch`, `--wait` | look again 5 times a second | watch, through cuts and restarts of "
      "the "
      "API server |\n"
      "| `get`, `describe` | also say when no controller is running, but not with `-o json` or "
      "`yaml` | need the rights `get`, `list` and, to watch, `watch` |\n\n"
      "| Exit code | Meaning |\n|---|---|\n"
      "| 0 | done |\n| 1 | failed |\n| 2 | not understood |\n| 3 | not found |\n"
      "| 4 | refused, or changed meanwhile |\n| 5 | not so within `--timeout` |\n";
  Options options;
  base::Flags flags("sandfleet", kAbout);
  const auto commands = declare(flags, options, [](const Verb&) { return kDone; });
  const auto section = [&](const std::string& title, const base::Flags& command) {
    text += "\n## " + title + "\n\n```text\n" + command.help() + "```\n";
  };
  section("Commands", flags);
  for (std::size_t i = 0; i < commands.size(); ++i)
    section("sandfleet " + verbs()[i].name, *commands[i]);
  return text;
}

}  // namespace cli
