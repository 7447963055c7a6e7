#include "cli/reference.h"

#include "cli/options.h"
#include "cli/way.h"

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
      "| 4 | refused, or changed meanwhile |\n| 5 | not so within `--timeout` |\n\n"
      "`exec`, `ps`, `kill` and `cp` reach into a sandbox through agentd on this machine: "
      "`--socket`, "
      "else\n"
      "`SANDFLEET_SOCKET`, else `$XDG_RUNTIME_DIR/sandfleet/agentd.sock` where that is, else\n" +
      std::string("`") + kSocket +
      "`. The sandbox is `[NAMESPACE/]NAME`, else `SANDFLEET_SANDBOX`. In a\n"
      "cluster agentd asks for a token of a ServiceAccount that may attach: `--token-file`, else\n"
      "`SANDFLEET_TOKEN_FILE`, or `--service-account` for one that the cluster gives.\n\n"
      "What `exec` runs is as if it ran here. All that stands behind `--` is the command; without\n"
      "`--` it is what stands behind the sandbox's name. No shell is involved: write `sh -c "
      "'...'`.\n"
      "Bytes go through as they are, and whoever does not read holds the command back. Standard\n"
      "input is passed on with `-i` only, so that `exec` in a loop does not eat what the loop "
      "reads.\n"
      "A first SIGINT, SIGTERM or SIGHUP goes on to the command, a second ends it, a third does "
      "not\n"
      "wait for that. A link that is cut, or an agentd that is started anew, costs no byte; after\n"
      "2 s a line says so to a terminal. `exec` returns when the command has ended and nobody "
      "holds\n"
      "its output open; what it has left behind ends then. For what is to stay: `--detach`.\n\n"
      "| Exit code of `exec` | Meaning |\n|---|---|\n"
      "| 0 to 255 | the command's own |\n| 128 + n | signal n ended it |\n"
      "| 2 | not understood; nothing was begun |\n"
      "| 124 | `--timeout` was reached, and it was ended |\n"
      "| 125 | sandfleet could not do its part: no agentd, no right, no such sandbox; or its "
      "output\n"
      "could not be written, and it was ended |\n"
      "| 126, 127 | the command cannot be executed; there is none of that name |\n"
      "| 255 | the way to it was lost for good, and what became of it is not known |\n\n"
      "A command may use these numbers too; where they are ours, a line on standard error that "
      "begins\n"
      "with `sandfleet:` says more.\n"
      "\n`cp` takes where from and where to, one of them `[NAMESPACE/]NAME:PATH`. As with cp(1), "
      "a\n"
      "copy stands by its own name in a folder that is there, and `dir/.` means what is in it. "
      "Modes,\n"
      "times, links and holes come along. A file is seen whole or not at all, and so is a folder "
      "that\n"
      "was not there. `-` stands for an archive: a tar compressed with zstd, of a folder. What is "
      "not\n"
      "as it was, say because it changed meanwhile, is told, and the exit code is 1. Links that "
      "lead\n"
      "out of the folder are left out of what comes out of a sandbox.\n";
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
