#include "controller/options.h"

#include <algorithm>

#include "libs/base/certificate.h"
#include "libs/base/strings.h"

namespace controller {
namespace {

bool has_flags_of_attach(const Options& options) {
  const Options none;
  return options.attach_address != none.attach_address || options.attach_port != none.attach_port ||
         options.attach_names != none.attach_names || options.attach_secret != none.attach_secret ||
         options.attach_look_seconds != none.attach_look_seconds;
}

// Why nobody can attach as these flags have it; empty when they can, or are not to.
std::string fault_of_attach(const Options& options) {
  if (options.attach_address.empty())
    return has_flags_of_attach(options) ? "flags of the attach service go with --attach-address"
                                        : "";
  const auto at = listening_at("--attach-address", options.attach_address, options.attach_port);
  if (!at) return at.error().message;
  if (!base::is_ip_address(at->host))
    return "--attach-address " + options.attach_address +
           ": give an IPv4 or IPv6 address, such as 0.0.0.0";
  if (options.attach_secret.empty() == options.attach_names.empty())
    return "--attach-address goes with either --attach-name, what clients dial, for a certificate "
           "of ours, or --attach-secret, for somebody else's";
  const auto bad = std::find_if_not(
      options.attach_names.begin(), options.attach_names.end(),
      [](const std::string& name) { return base::as_server_name(name).has_value(); });
  return bad == options.attach_names.end()
             ? ""
             : "--attach-name " + *bad + ": give a host name or an IP address, without a port";
}

}  // namespace

base::Result<Listening> listening_at(std::string_view flag, const std::string& text,
                                     std::int64_t port) {
  Listening at{text, static_cast<std::uint16_t>(port)};
  const auto colon = text.rfind(':');
  const bool has_port = colon != std::string::npos &&
                        (text.find(':') == colon || (colon > 0 && text[colon - 1] == ']'));
  if (!has_port) return at;
  const auto told = base::parse_integer(text.substr(colon + 1));
  if (!told || *told < 0 || *told > 65'535)
    return base::error(base::ErrorCode::kInvalid, flag, " ", text,
                       ": the port is not a number from 0 to 65535");
  at.host = text.substr(0, colon);
  if (at.host.starts_with('[')) at.host = at.host.substr(1, at.host.size() - 2);
  at.port = static_cast<std::uint16_t>(*told);
  return at;
}

void declare(base::Flags& flags, Options& options) {
  flags.text("--manifests", options.manifests,
             "folder of YAML documents to keep true, with --state; without both: a cluster's "
             "resources");
  flags.text("--state", options.state, "folder for what the controller must remember");
  flags.flag("--claim-moved-manifests", options.claim_moved_manifests,
             "the manifests were moved here from another machine or folder, and that is meant");
  flags.text(
      "--attach-socket", options.attach_socket,
      "folder: Unix socket where the way into a sandbox is asked for; else attach.sock in the "
      "state folder");
  flags.text("--attach-socket-group", options.attach_socket_group,
             "folder: group whose members may ask there too; else root and the user of the "
             "controller alone");
  flags.text(
      "--kubeconfig", options.kubeconfig,
      "file that says which cluster and who we are; else $KUBECONFIG, ~/.kube/config, or the "
      "pod's own account");
  flags.text("--context", options.context, "the kubeconfig's context; else its current one");
  flags.text("--namespace", options.watched_namespace,
             "cluster: whose Sandboxes to keep; else those of all namespaces");
  flags.text("--own-namespace", options.own_namespace,
             "cluster: where leases, keys, providers' Secrets and records are; else the pod's or "
             "context's namespace");
  flags.text("--release", options.release,
             "cluster: what the names of those objects begin with, one for each installation");
  flags.number("--shards", options.shards,
               "cluster: parts that the providers are divided into, each with its own leader; the "
               "same for all replicas",
               {.at_least = 1, .at_most = 64});
  flags.number("--lease-seconds", options.lease_seconds,
               "cluster: how long a leader that is silent is waited for",
               {.at_least = 3, .at_most = 300});
  flags.text("--http-transport", options.http_transport,
             "cluster: the library that speaks to the API server",
             {.choices = {"cpprest", "curl"}});
  flags.text(
      "--attach-address", options.attach_address,
      "cluster: where who may `create sandboxes/attach` asks for the way into a sandbox, over "
      "HTTPS, ADDRESS or ADDRESS:PORT; else nobody can");
  flags.number("--attach-port", options.attach_port, "its port; 0: any free one",
               {.at_least = 0, .at_most = 65'535});
  flags.texts("--attach-name", options.attach_names,
              "host name or IP address that clients dial there, for the certificate that we make "
              "and renew; may be given several times");
  flags.text("--attach-secret", options.attach_secret,
             "Secret in our namespace with tls.crt, tls.key and ca.crt that somebody else keeps, "
             "cert-manager for instance; instead of a certificate of ours");
  flags.number("--attach-look-seconds", options.attach_look_seconds,
               "how often that certificate is looked at", {.at_least = 1, .at_most = 86'400});
  flags.text("--fleet-id", options.fleet_id,
             "this installation's name on all it creates; else made on first use, in a cluster of "
             "its UID, our namespace and --release");
  flags.texts("--executor", options.executors,
              "executor to send to templates that lack it; may be given several times, once for "
              "each processor; else those beside this program");
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
  flags.text("--probe", options.probe,
             "ask the /readyz or /healthz of another controller at this URL whether it works, and "
             "do nothing else");
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
  flags.number("--executor-check-seconds", options.executor_check_seconds,
               "how often the executor of a sandbox is asked whether it still works; in a large "
               "fleet less often",
               {.at_least = 1, .at_most = 86'400});
  flags.text("--log-level", options.log_level, "how much is said",
             {.choices = {"debug", "info", "warn", "error"}});
  flags.text("--log-format", options.log_format, "for people or for machines",
             {.choices = {"text", "json"}});
}

std::string contradiction_in(const Options& options) {
  if (!options.has_folder()) {
    if (options.claim_moved_manifests) return "--claim-moved-manifests goes with --manifests";
    if (!options.attach_socket.empty() || !options.attach_socket_group.empty())
      return "the attach service's socket goes with --manifests";
    return fault_of_attach(options);
  }
  if (options.manifests.empty()) return "--state goes with --manifests";
  if (options.state.empty()) return "--manifests goes with --state";
  const Options none;
  const bool cluster = !options.kubeconfig.empty() || !options.context.empty() ||
                       !options.watched_namespace.empty() || !options.own_namespace.empty() ||
                       options.release != none.release || options.shards != none.shards ||
                       options.lease_seconds != none.lease_seconds ||
                       options.http_transport != none.http_transport ||
                       has_flags_of_attach(options);
  return cluster ? "--manifests is a folder; flags of a cluster do not go with it" : "";
}

std::optional<int> parse_options(int argc, const char* const* argv, Options& options) {
  base::Flags flags("sandfleet-controller", "Keeps Sandbox resources and E2B sandboxes in step.");
  declare(flags, options);
  if (const auto exit_code = flags.parse(argc, argv)) return exit_code;
  if (const std::string wrong = contradiction_in(options); !wrong.empty())
    return flags.refuse(wrong);
  return std::nullopt;
}

}  // namespace controller
