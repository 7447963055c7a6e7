#include "controller/options.h"

namespace controller {

void declare(base::Flags& flags, Options& options) {
  flags.text("--manifests", options.manifests, "folder of YAML documents to keep true",
             {.required = true});
  flags.text("--state", options.state, "folder for what the controller must remember",
             {.required = true});
  flags.text("--fleet-id", options.fleet_id,
             "this installation's name on all it creates; made on first use");
  flags.flag("--claim-moved-manifests", options.claim_moved_manifests,
             "the manifests were moved here from another machine or folder, and that is meant");
  flags.text("--executor", options.executor,
             "executor to send to templates that lack it; else the one beside this program");
  flags.texts("--api-key-file", options.api_key_files,
              "[PROVIDER=]PATH of a file that holds an API key, read again for each use; may be "
              "given several times. A Secret named by the provider comes first; SANDFLEET_API_KEY "
              "and E2B_API_KEY of the environment come last");
  flags.text("--metrics-address", options.metrics_address,
             "where /metrics, /healthz and /readyz are served, ADDRESS or ADDRESS:PORT");
  flags.number("--metrics-port", options.metrics_port, "their port; 0: any free one",
               {.at_least = 0, .at_most = 65'535});
  flags.text("--ready-file", options.ready_file,
             "written once the controller works, with its address as JSON");
  flags.number("--workers", options.workers, "threads that reconcile",
               {.at_least = 1, .at_most = 256});
  flags.number("--operations", options.operations,
               "creates, pauses, resumes and preparations at once",
               {.at_least = 1, .at_most = 512});
  flags.number("--poll-seconds", options.poll_seconds,
               "how often a provider is listed, to notice what others did",
               {.at_least = 1, .at_most = 3'600});
  flags.number("--sweep-seconds", options.sweep_seconds, "how often orphans are looked for",
               {.at_least = 1, .at_most = 86'400});
  flags.number("--grace-seconds", options.grace_seconds,
               "how long an orphan is left alone once it was seen",
               {.at_least = 0, .at_most = 86'400});
  flags.text("--log-level", options.log_level, "how much is said",
             {.choices = {"debug", "info", "warn", "error"}});
  flags.text("--log-format", options.log_format, "for people or for machines",
             {.choices = {"text", "json"}});
}

std::optional<int> parse_options(int argc, const char* const* argv, Options& options) {
  base::Flags flags("sandfleet-controller", "Keeps Sandbox resources and E2B sandboxes in step.");
  declare(flags, options);
  return flags.parse(argc, argv);
}

}  // namespace controller
